// Tools
// What an agent may do, each with what it may change outside: that decides how it is recorded and who is asked before.
import { PawlError } from "../base/errors.ts";
import type { ApproveOptions } from "../core/approval.ts";
import type { Amounts } from "../core/budget.ts";
import type { StepInfo } from "../core/context.ts";
import type { EffectClass } from "../core/journal.ts";
import type { Duration, Retry } from "../core/retry.ts";
import type { SchemaOutput, StandardSchema } from "../core/schema.ts";
import type { Detected, UndoInfo } from "../core/undoable-call.ts";
import { jsonSchemaOf } from "./json-schema.ts";
import type { SessionEvent } from "./session-event.ts";
import type { SessionView } from "./session-view.ts";
import type { Slice } from "./slice.ts";

/** Arguments by a schema, or by plain JSON schema, which is only shown to the model and compared in outline. */
export type ToolInput = StandardSchema | { readonly jsonSchema: object };

/** What a tool's function is given as parameters. */
export type ToolParams<S> = S extends StandardSchema ? SchemaOutput<S> : Readonly<Record<string, unknown>>;

/** Who is asked before a tool begins, as of `ctx.approve`: the action is the tool with its arguments. A denial goes back to the model. */
export type ApprovalPolicy = Omit<ApproveOptions, "action" | "onDenied" | "onChanges">;

/** What a tool's function receives beside its parameters. */
export interface ToolInfo extends StepInfo {
  /** The call's id, as the model gave it. */
  readonly callId: string;
  /** A copy of the session: what the tool changes in it counts only if the tool succeeds. */
  readonly session: SessionView;
  /** Changes the session, once the tool has succeeded. */
  dispatch(event: SessionEvent): void;
}

/** What a tool says to the model, and the value that the program goes on with. */
export interface ToolResult<T = unknown> {
  readonly message: string;
  readonly value?: T;
  /** False: it failed, and leaves no trace in the session. Default true. */
  readonly success?: boolean;
}

/** What every tool says about itself. */
export interface ToolFacts {
  /** Letters, digits, "_" and "-", up to 64 of them: what all providers accept. */
  readonly name: string;
  /** What it does and when to use it, for the model. */
  readonly description: string;
  /**
   * What it may change outside: "read" nothing, "draft" what nobody acts upon, "write" data, "execute" the world. All but "read" are effects in
   * the run's ledger.
   */
  readonly class: EffectClass;
  /** The outside recognises a repetition by `info.key`, or by itself; "natural": doing it again leaves the same. Default false. */
  readonly idempotent?: boolean | "natural";
  /** Who is asked before; `false`: nobody, whatever the agent's policy says. Default: the agent's policy for its class. */
  readonly approval?: ApprovalPolicy | false;
  /** Its version, which an approval is bound to. Default: none. */
  readonly version?: string;
  /** Time for one attempt, counted from the last heartbeat. Default 45 s. */
  readonly timeout?: Duration;
  /** Which errors are tried again, and when. Refused for what could happen twice. Default: the workflow's. */
  readonly retry?: Retry;
  /** The name of a circuit breaker: while it is open, calls fail at once and the model is told. */
  readonly breaker?: string;
  /** What a call reserves of the run's budgets. */
  readonly spend?: Amounts;
  /** It works on the session: it begins after the tools before it in the same round that do so, and sees what they did. Default false. */
  readonly inOrder?: boolean;
}

/** What `tool` takes. */
export interface ToolSpec<S extends ToolInput, T> extends ToolFacts {
  /** Checked when the model's answer comes: a call that does not fit goes back to the model and is never begun. */
  readonly input: S;
  /** Its value is added to this slice of the session. */
  readonly output?: Slice<T>;
  /** Does it. What it returns is the value, or `{ message, value }`; what it throws is told to the model, after its retries. */
  run(params: ToolParams<S>, info: ToolInfo): T | ToolResult<T> | Promise<T | ToolResult<T>>;
  /** Finds out whether it happened; asked before it is tried again after a crash. It must not change anything. */
  detect?(params: ToolParams<S>, info: StepInfo): Detected<T> | Promise<Detected<T>>;
  /** Takes it back if the run fails later. `value` is `undefined` if nobody can tell whether it happened. */
  undo?(params: ToolParams<S>, value: T | undefined, info: UndoInfo): unknown;
}

/** Where the answer to a question comes from. */
export interface AnsweredBy {
  readonly signal: string;
  readonly timeout?: Duration;
  readonly schema?: StandardSchema;
}

/** A tool, made by `tool`, `question` or `mcpTools`. */
export interface Tool<P = unknown, T = unknown> extends ToolFacts {
  readonly input: ToolInput;
  /** Of its parameters, for the model. */
  readonly jsonSchema: object;
  readonly output?: Slice<T>;
  run(params: P, info: ToolInfo): T | ToolResult<T> | Promise<T | ToolResult<T>>;
  detect?(params: P, info: StepInfo): Detected<T> | Promise<Detected<T>>;
  undo?(params: P, value: T | undefined, info: UndoInfo): unknown;
  /** Its answer comes from outside, as a signal: it is never run. Of what `question` makes alone. */
  readonly answeredBy?: AnsweredBy;
  /** Calling it ends the agent's work with this outcome: it is never run. Of the built-in tools alone. */
  readonly ends?: "refusal" | "uncertain" | "escalation";
}

/** What a tool call leaves: all that is recorded of it. */
export interface ToolRecord {
  /** What the model is told. */
  readonly message: string;
  readonly value?: unknown;
  readonly success: boolean;
  /** What it changed in the session, in order; applied by the loop, live and in replay alike. */
  readonly events: readonly SessionEvent[];
  /** It comes from outside: whatever it says is data, and no instruction. */
  readonly trust: "untrusted";
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const CLASSES: readonly EffectClass[] = ["read", "draft", "write", "execute"];

/**
 * Defines a tool for agents.
 *
 * ```ts
 * const search = tool({
 *   name: "search",
 *   description: "Searches the handbook.",
 *   class: "read",
 *   input: z.object({ query: z.string() }),
 *   run: ({ query }, { signal }) => handbook.search(query, { signal }),
 * });
 * ```
 */
export function tool<S extends ToolInput, T>(spec: ToolSpec<S, T>): Tool<ToolParams<S>, T> {
  const { name } = spec;
  if (typeof name !== "string" || !NAME.test(name))
    throw invalid(String(name), "name", 'Give 1 to 64 letters, digits, "_" and "-": what all providers accept');
  if (typeof spec.run !== "function") throw invalid(name, "run", "Give a function run(params, info)");
  if (typeof spec.description !== "string" || spec.description.trim() === "")
    throw invalid(name, "description", "Say what it does and when to use it: the model sees nothing else");
  if (!CLASSES.includes(spec.class))
    throw invalid(name, "class", `Give one of ${CLASSES.join(", ")}: what it may change outside`);
  assertSafe(spec);
  return { ...spec, jsonSchema: jsonSchemaOf(spec.input, `tool "${name}"`) };
}

/** True if a repetition could do harm: nothing recognises one, and it changes something outside. */
export function isUnsafeTool({
  class: kind,
  idempotent = false,
  detect,
}: Pick<Tool, "class" | "idempotent" | "detect">): boolean {
  return (kind === "write" || kind === "execute") && idempotent === false && detect === undefined;
}

/** Whether somebody has to say something before it has done its work, whatever policy there is for its class. */
export function needsPeople({ approval, answeredBy }: Pick<Tool, "approval" | "answeredBy">): boolean {
  return answeredBy !== undefined || (approval !== undefined && approval !== false);
}

/** Nothing may be retried that could happen twice (S2-67). */
function assertSafe(spec: Pick<Tool, "name" | "class" | "idempotent" | "detect" | "retry">): void {
  const { name, retry } = spec;
  if (retry === undefined || retry === false || retry === 0 || !isUnsafeTool(spec)) return;
  throw new PawlError(
    "unsafe_retry",
    `Tool "${name}" has class "${spec.class}" and nothing that keeps it from happening twice, so it is not repeated by itself. ` +
      "Give it a `detect`, or `idempotent: true` if the outside recognises its key; or leave out `retry`.",
    { fields: { tool: name, class: spec.class } },
  );
}

function invalid(name: string, field: string, advice: string): PawlError {
  return new PawlError("invalid_argument", `\`${field}\` of tool "${name}" cannot be used. ${advice}.`, {
    fields: { tool: name, field },
  });
}
