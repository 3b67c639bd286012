// Tool calls
// What becomes of a call that a model proposes: first a verdict, then the work on a copy of the session, and at last the record.
//
//   TC1. The verdict is part of the recorded answer: a later schema or allow-list changes nothing about what was accepted before.
//   TC2. A tool changes the session only through events of a call that succeeded (X-4).
//   TC3. What a tool says is data: its record is marked untrusted, whatever it is.
import { encode } from "../base/codec.ts";
import { messageOf, readProperty } from "../base/errors.ts";
import { readableJson, storable } from "../base/storable.ts";
import type { StepInfo } from "../core/context.ts";
import { infoWith } from "../core/info-with.ts";
import type { ToolCall } from "./calls.ts";
import { digestOf } from "./digest.ts";
import { checkedInput } from "./json-schema.ts";
import type { CallVerdict, ModelPart, ModelReply } from "./model.ts";
import type { Session } from "./session.ts";
import type { SessionEvent } from "./session-event.ts";
import type { Tool, ToolRecord, ToolResult } from "./tool.ts";

/** The tools that a model is shown, by name, and those it may not use although others have them. */
export interface Toolset {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly forbidden: ReadonlySet<string>;
}

/** A call that a model proposes. */
export interface Proposal {
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
  /** Why it is not done; `null`: it is. */
  readonly refused: string | null;
}

/** Looks at all calls of an answer, before it is recorded. */
export async function judged(reply: ModelReply, toolset: Toolset): Promise<ModelReply> {
  const verdicts: Record<number, CallVerdict> = {};
  for (const [index, part] of reply.content.entries()) {
    if (!isOwnCall(part)) continue;
    const verdict = await verdictOn(part, toolset);
    if (verdict !== null) verdicts[index] = verdict;
  }
  return Object.keys(verdicts).length === 0 ? reply : { ...reply, verdicts };
}

/** Calls that are ours to do: the provider does its own. */
function isOwnCall(part: ModelPart): boolean {
  return part.type === "tool-call" && part.providerExecuted !== true;
}

async function verdictOn({ toolName = "", input }: ModelPart, toolset: Toolset): Promise<CallVerdict | null> {
  const tool = toolset.tools.get(toolName);
  if (tool === undefined) return { refused: unknownTool(toolName, toolset) };
  if (typeof input === "string") return { refused: `The arguments of "${toolName}" are no JSON: ${excerpt(input)}.` };
  try {
    const args = await checkedInput(tool.input, input, `The arguments of tool "${toolName}"`);
    return isSame(args, input) ? null : { args };
  } catch (error) {
    const issues = readProperty(readProperty(error, "fields"), "issues");
    const why = Array.isArray(issues) ? issues.join("; ") : messageOf(error);
    return { refused: `The arguments of "${toolName}" do not fit: ${why}. Correct them and call it again.` };
  }
}

/** Alike to the tool, and not only as JSON: a date is no text. What cannot be recorded is not the same, so that the journal says so. */
function isSame(args: unknown, input: unknown): boolean {
  try {
    return encode(args) === encode(input);
  } catch {
    return false;
  }
}

function unknownTool(name: string, { tools, forbidden }: Toolset): string {
  const known = [...tools.keys()].join(", ");
  const why = forbidden.has(name) ? "is not allowed here" : "does not exist";
  return `Tool "${excerpt(name)}" ${why}. ${known === "" ? "There are no tools." : `Use one of: ${known}.`}`;
}

/** Somebody else's text, on one line. */
function excerpt(text: string): string {
  const line = text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ");
  return line.length > 100 ? `${line.slice(0, 100)}…` : line;
}

/** The calls of an answer, in order, with what was found about them. */
export function proposalsOf({ content, verdicts = {} }: ModelReply): Proposal[] {
  return content.flatMap((part, index) => {
    if (!isOwnCall(part)) return [];
    const verdict = verdicts[index];
    const args = verdict !== undefined && "args" in verdict ? verdict.args : part.input;
    return [{ id: part.toolCallId ?? "", name: part.toolName ?? "", args, refused: verdict?.refused ?? null }];
  });
}

/** The keys of tool calls: by tool and call id. Ids that a model uses again get the round, the place in it, and a number if others look like that. */
export class CallKeys {
  readonly #used = new Set<string>();

  keyOf({ name, id }: Proposal, round: number, index: number): string {
    const base = `tool.${name}.${safe(id)}`;
    const key = [base, `${base}.${round}`, `${base}.${round}.${index}`].find((one) => !this.#used.has(one));
    const free = key ?? this.#numbered(`${base}.${round}.${index}`);
    this.#used.add(free);
    return free;
  }

  #numbered(taken: string): string {
    for (let number = 2; ; number++) if (!this.#used.has(`${taken}.${number}`)) return `${taken}.${number}`;
  }
}

const LONGEST_ID = 60;

/** An id as a key may have it; two ids stay two. */
function safe(id: string): string {
  const plain = id.replaceAll(/[^\w.:-]/g, "_").slice(0, LONGEST_ID);
  return plain === id && id !== "" ? id : `${plain}.${digestOf(id).slice(0, 8)}`;
}

/** Lets a tool work on its own copy of the session, and gives what it leaves. */
export async function performed(
  { id, args }: Pick<ToolCall, "id" | "args">,
  tool: Tool,
  session: Session,
  info: StepInfo,
): Promise<ToolRecord> {
  const events: SessionEvent[] = [];
  const dispatch = (event: SessionEvent) => {
    session.dispatch(event);
    events.push(event);
  };
  const given: unknown = await tool.run(args, infoWith(info, { callId: id, session, dispatch }));
  return recordOf(tool, given, session, events);
}

/** The record of what a tool has returned. */
export function recordOf(
  tool: Pick<Tool, "class" | "output">,
  given: unknown,
  /** What is checked against it; `null`: nothing. */
  session: Session | null,
  events: readonly SessionEvent[] = [],
): ToolRecord {
  const { message, value, success = true } = resultOf(given);
  // A tool that has failed leaves no trace (X-4).
  if (!success) return failure(message);
  const record: ToolRecord = { message, success: true, events: [...events], trust: "untrusted" };
  const refusal = value === undefined || session === null ? null : refusalOf(tool, value, session);
  if (refusal === null) return value === undefined ? record : { ...record, value };
  // A value that its slice refuses is the tool's failure, and no surprise for whoever applies it. What it did outside is done: to be told of a
  // failure, a model would do it again.
  if (tool.class === "read") throw refusal.error;
  return { ...record, message: `${message}\n(This is done, but its value was not kept: ${messageOf(refusal.error)})` };
}

function refusalOf(
  { output }: Pick<Tool, "output">,
  value: unknown,
  session: Session,
): { readonly error: unknown } | null {
  try {
    if (output !== undefined) session.add(output, value);
    return null;
  } catch (error) {
    return { error };
  }
}

/** What the journal has of a call, which a person may have written: any value then stands for what the tool returned. */
export function asRecord(tool: Tool, given: unknown): ToolRecord {
  const isRecord =
    typeof given === "object" && given !== null && "trust" in given && "events" in given && "success" in given;
  return isRecord ? (given as ToolRecord) : recordOf(tool, given, null);
}

/** The record of a call that has not done what it was to do. */
export function failure(message: string): ToolRecord {
  return { message, success: false, events: [], trust: "untrusted" };
}

const RESULT_KEYS: ReadonlySet<string> = new Set(["message", "value", "success"]);

/** What cannot be recorded as it is becomes what the model would see of it: the tool has done its work. */
function resultOf(given: unknown): ToolResult {
  if (isResult(given)) return "value" in given ? { ...given, value: storable(given.value) } : given;
  const value = storable(given);
  return { message: textOf(value), value };
}

function isResult(given: unknown): given is ToolResult {
  if (typeof given !== "object" || given === null || typeof readProperty(given, "message") !== "string") return false;
  return Object.keys(given).every((key) => RESULT_KEYS.has(key));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (readableJson(value) ?? "Done.");
}

/** What a call has changed in a session, applied to it: live and in replay alike. */
export function applyRecord(session: Session, tool: Pick<Tool, "output">, record: ToolRecord): void {
  for (const event of record.events) session.dispatch(event);
  if (record.success && tool.output !== undefined && record.value !== undefined)
    session.dispatch(tool.output.added(record.value));
}
