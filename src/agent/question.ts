// Questions
// A tool whose answer comes from outside the agent: from a person, or from another system. The run waits for it without memory or a worker.
import type { Duration } from "../core/retry.ts";
import type { StandardSchema } from "../core/schema.ts";
import type { Slice } from "./slice.ts";
import { type Tool, type ToolInput, type ToolParams, tool } from "./tool.ts";

/** What `question` takes. */
export interface QuestionSpec<S extends ToolInput, T> {
  /** As of any tool. */
  readonly name: string;
  /** What may be asked and when, for the model. */
  readonly description: string;
  /** What the model says with it. It is in the journal, for whoever answers. */
  readonly input: S;
  /** The name of the signal that brings the answer: `pawl.signal(run, name, answer)`. One that came earlier counts. Two of a round wait one after the other. */
  readonly signal: string;
  /** Give up after this long; the model is told that nobody has answered. Default: it waits as long as the run may. */
  readonly timeout?: Duration;
  /** Checked before the answer is recorded. Default: anything. */
  readonly schema?: StandardSchema;
  /** The answer is added to this slice of the session. */
  readonly output?: Slice<T>;
}

/**
 * Defines a question: the agent asks, and goes on when a signal brings the answer.
 *
 * ```ts
 * const askCustomer = question({
 *   name: "ask_customer",
 *   description: "Asks the customer something.",
 *   input: z.object({ question: z.string() }),
 *   signal: "customer-answer",
 *   timeout: "3 days",
 * });
 * ```
 */
export function question<S extends ToolInput, T = unknown>(spec: QuestionSpec<S, T>): Tool<ToolParams<S>, T> {
  const { signal, timeout, schema, ...facts } = spec;
  const made = tool<S, T>({ ...facts, class: "read", approval: false, run: neverRun });
  return {
    ...made,
    answeredBy: { signal, ...(timeout !== undefined && { timeout }), ...(schema !== undefined && { schema }) },
  };
}

function neverRun(): never {
  throw new Error("A question has no function: its answer comes by a signal.");
}
