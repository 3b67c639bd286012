// Durable tools
// Tools of the AI SDK for the body of a workflow: each call is a step or an effect of the run, known by the id that the model gave it.
import type { ToolSet } from "ai";
import { PawlError } from "../base/errors.ts";
import { storable } from "../base/storable.ts";
import type { Context, StepInfo, StepOptions } from "../core/context.ts";
import type { EffectSpec } from "../core/effect.ts";
import type { EffectClass } from "../core/journal.ts";
import type { Detected, UndoInfo } from "../core/undoable-call.ts";
import { callName } from "./call-name.ts";
import { signalOf } from "./durable-model.ts";
import { tell } from "./side-stream.ts";
import { isDenied, type Leave, leaveFor, modelOutput, nobodyToAsk, type ToolApprovals } from "./tool-approval.ts";
import { type ToolCallOptions, type ToolLike, withStep } from "./tool-like.ts";

/** How a tool acts outside, and how its calls are run. */
export interface ToolEffectOptions extends Pick<StepOptions, "timeout" | "retry" | "spend" | "breaker"> {
  /** What it may change. Default "write". */
  readonly class?: EffectClass;
  /** The outside recognises a repetition by the call's key, or by itself. Default false. */
  readonly idempotent?: boolean | "natural";
  /** Finds out whether the call happened; asked before it is tried again. It must not change anything. */
  detect?(input: unknown, info: StepInfo): Detected<unknown> | Promise<Detected<unknown>>;
  /** Takes the call back if the run fails later. `output` is `undefined` if nobody can tell whether it happened; must be safe to repeat. */
  undo?(input: unknown, output: unknown, info: UndoInfo): unknown;
}

/** A class is enough for most tools. "body": its `execute` uses the context itself, and so is no step of its own. */
export type ToolEffect = EffectClass | "body" | ToolEffectOptions;

export interface DurableToolsOptions<T> {
  /** What each tool does outside. Default for each: "write", and so not repeated blindly. Those that only look are "read". */
  readonly effects?: { readonly [K in keyof T]?: ToolEffect };
  /** Who is asked about calls of tools with `needsApproval`. */
  readonly approvals?: ToolApprovals;
}

const DURABLE = new WeakSet<object>();

/**
 * Makes tools of the AI SDK durable: each call happens once, whatever becomes of the process, and waits for people where its tool needs approval.
 *
 * ```ts
 * const tools = durableTools(ctx, { search, publish }, { effects: { search: "read" }, approvals: { approvers: ["role:editor"] } });
 * ```
 */
export function durableTools<T extends ToolSet>(ctx: Context, tools: T, options: DurableToolsOptions<T> = {}): T {
  assertKnown(tools, options.effects);
  return wrapTools(ctx, tools, options, null);
}

/** A name that fits no tool would leave the one that was meant a writer. */
export function assertKnown(tools: object, effects: object = {}): void {
  const unknown = Object.keys(effects).find((name) => !Object.hasOwn(tools, name));
  if (unknown === undefined) return;
  const message = `\`effects\` names the tool "${unknown}", which is not there. There are ${Object.keys(tools).join(", ")}.`;
  throw new PawlError("invalid_argument", message, { fields: { field: `effects.${unknown}` } });
}

/** What somebody else has said about single calls: whether people are to be asked, whatever the tool says. */
export type Rulings = ReadonlyMap<string, boolean>;

export function wrapTools<T extends ToolSet>(
  ctx: Context,
  tools: T,
  { effects = {}, approvals }: DurableToolsOptions<T>,
  rulings: Rulings | null,
): T {
  const wrapped = Object.entries(tools).map(([name, tool]) => [
    name,
    durable(new ToolCalls(ctx, name, tool as ToolLike, effects[name] ?? {}, approvals, rulings), tool as ToolLike),
  ]);
  // Tools of the same names and types: what was changed of them keeps its signature.
  return Object.fromEntries(wrapped) as T;
}

/** Tools without `execute` are somebody else's to run: they stay as they are. */
function durable(calls: ToolCalls, tool: ToolLike): ToolLike {
  if (tool.execute === undefined || DURABLE.has(tool)) return tool;
  calls.assertAskable();
  const { needsApproval: _, ...rest } = tool;
  const wrapped: ToolLike = {
    ...rest,
    execute: (input, options) => calls.call(input, options),
    ...(calls.mayAsk && { toModelOutput: modelOutput(tool) }),
  };
  DURABLE.add(wrapped);
  return wrapped;
}

class ToolCalls {
  readonly #ctx: Context;
  readonly #name: string;
  readonly #tool: ToolLike;
  readonly #effect: ToolEffectOptions;
  readonly #isOwnBody: boolean;
  readonly #approvals: ToolApprovals | undefined;

  readonly #rulings: Rulings | null;

  constructor(
    ctx: Context,
    name: string,
    tool: ToolLike,
    effect: ToolEffect,
    approvals: ToolApprovals | undefined,
    rulings: Rulings | null,
  ) {
    this.#ctx = ctx;
    this.#name = name;
    this.#tool = tool;
    this.#isOwnBody = effect === "body";
    this.#effect = effect === "body" ? {} : typeof effect === "string" ? { class: effect } : effect;
    this.#approvals = approvals;
    this.#rulings = rulings;
  }

  /** Whether a call may have to be approved. */
  get mayAsk(): boolean {
    return this.#rulings !== null || (this.#tool.needsApproval ?? false) !== false;
  }

  /** A tool that asks, and nobody to ask, is a mistake: it shows when the tools are made and not when the model calls one. */
  assertAskable(): void {
    if (this.mayAsk && this.#approvals === undefined) throw nobodyToAsk(this.#name);
  }

  async call(input: unknown, options: ToolCallOptions): Promise<unknown> {
    const leave = await this.#leave(input, options);
    if (isDenied(leave)) return leave;
    if (this.#isOwnBody) return lastOf(this.#tool.execute?.(input, options), () => {});
    const run = (info: StepInfo) => this.#execute(input, options, info);
    const name = callName("tool", this.#name, options.toolCallId);
    return this.#effect.class === "read" && leave === null ? this.#read(name, run) : this.#act(name, run, input, leave);
  }

  #leave(input: unknown, options: ToolCallOptions): Promise<Leave | null> | null {
    const needsApproval = this.#rulings?.get(options.toolCallId) ?? this.#tool.needsApproval ?? false;
    if (needsApproval === false) return null;
    return leaveFor(this.#ctx, { tool: this.#name, needsApproval, input, options }, this.#approvals);
  }

  #read(name: string, run: (info: StepInfo) => unknown): Promise<unknown> {
    return this.#ctx.step(name, run, { kind: "api", ...this.#policy() });
  }

  #act(name: string, run: EffectSpec<unknown>["do"], input: unknown, leave: Leave | null): Promise<unknown> {
    const { class: kind = "write", idempotent = false, detect, undo } = this.#effect;
    const spec: EffectSpec<unknown> = {
      do: run,
      class: kind,
      idempotent,
      ...(detect !== undefined && { detect: (info) => detect(input, info) }),
      ...(undo !== undefined && { undo: (output, info) => undo(input, output, info) }),
      ...(leave !== null && !isDenied(leave) && { needs: leave }),
    };
    return this.#ctx.effect(name, spec, this.#policy());
  }

  #policy(): Pick<StepOptions, "timeout" | "retry" | "spend" | "breaker"> {
    const { timeout, retry, spend, breaker } = this.#effect;
    return {
      ...(timeout !== undefined && { timeout }),
      ...(retry !== undefined && { retry }),
      ...(spend !== undefined && { spend }),
      ...(breaker !== undefined && { breaker }),
    };
  }

  #execute(input: unknown, options: ToolCallOptions, info: StepInfo): unknown {
    const aborting = withStep(options, info, signalOf(info.signal, options.abortSignal));
    const { toolCallId } = options;
    const result = this.#tool.execute?.(input, aborting);
    // A tool that does not wait for anything is over when it returns.
    if (!isAwaited(result)) return storable(result);
    const last = lastOf(result, (output) => {
      info.heartbeat();
      tell(info, { type: "tool-preliminary", toolCallId, toolName: this.#name, output });
    });
    return last.then(storable);
  }
}

function isAwaited(result: unknown): boolean {
  if (typeof result !== "object" || result === null) return false;
  return "then" in result || Symbol.asyncIterator in result;
}

/** What a tool comes to: its last word, if it says several. */
async function lastOf(result: unknown, onEach: (value: unknown) => void): Promise<unknown> {
  if (typeof result !== "object" || result === null || !(Symbol.asyncIterator in result)) return result;
  let last: unknown;
  for await (const value of result as AsyncIterable<unknown>) {
    last = value;
    onEach(value);
  }
  return last;
}
