// The AI SDK's tool, by its shape: what ai 6 and ai 7 have in common of it.
import type { StepInfo } from "../core/context.ts";

/** What the SDK gives a tool beside its input. */
export interface ToolCallOptions {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal | undefined;
}

type NeedsApproval = boolean | ((input: unknown, options: ToolCallOptions) => boolean | PromiseLike<boolean>);

/** A tool as `tool({ … })` makes it. */
export interface ToolLike {
  readonly needsApproval?: NeedsApproval | undefined;
  execute?(input: unknown, options: ToolCallOptions): unknown;
  toModelOutput?(given: { readonly output: unknown }): unknown;
}

const STEP = Symbol("pawl.step");

/** The same options, with the step that the tool runs in. */
export function withStep(options: ToolCallOptions, info: StepInfo, abortSignal: AbortSignal): ToolCallOptions {
  return { ...options, abortSignal, [STEP]: info } as ToolCallOptions;
}

/**
 * The step that a tool's `execute` runs in, by its second argument: `stepOf(options)?.key` is an idempotency key for the outside, the same in every
 * attempt. `undefined` where the tool is used without Pawl.
 */
export function stepOf(options: object): StepInfo | undefined {
  return (options as { readonly [STEP]?: StepInfo })[STEP];
}
