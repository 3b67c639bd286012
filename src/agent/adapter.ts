// Adapters
// What evaluates a prompt: with a model, in rounds, or with whatever a user writes. Loops and agents know adapters alone.

import type { EventBus } from "./bus.ts";
import type { Calls } from "./calls.ts";
import { Evaluation, type RoundOptions } from "./evaluate.ts";
import type { Model, Usage } from "./model.ts";
import type { BoundPrompt } from "./prompt.ts";
import type { Session } from "./session.ts";

/** What may be spent on one piece of work; kept in the session, so that it holds over restarts. */
export interface SpendingLimits {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** Both together. */
  readonly tokens?: number;
  /** Money, by the adapter's `price`. */
  readonly usd?: number;
  /** Calls of the model. */
  readonly calls?: number;
}

/** What an evaluation works with. */
export interface EvaluateOptions {
  readonly session: Session;
  readonly bus?: EventBus;
  /** Store time in milliseconds after which no call is begun. Default: none. */
  readonly deadline?: number;
  /** Looked at before each call. Default: no limit. */
  readonly budget?: SpendingLimits;
  /** Ends the evaluation between two calls, and the calls under way. */
  readonly signal?: AbortSignal;
  readonly calls: Calls;
}

/** How an evaluation ended; everything but "finished" has a reason. */
export type Ending =
  | { readonly kind: "finished" }
  | {
      readonly kind: "refusal" | "uncertain" | "error" | "escalation" | "incomplete";
      readonly reason: string;
    };

/** What an evaluation came to. */
export interface PromptResponse<O = unknown> {
  /** "namespace:key". */
  readonly prompt: string;
  /** The model's last words. */
  readonly text: string;
  /** What the prompt's schema makes of the text; the text itself without one. `null` unless it finished. */
  readonly output: O | null;
  readonly ending: Ending;
  readonly rounds: number;
  readonly usage: Usage;
}

/** Evaluates a prompt. `modelAdapter` does so with a language model. */
export interface Adapter {
  evaluate<O>(prompt: BoundPrompt<O>, options: EvaluateOptions): Promise<PromptResponse<O>>;
}

/** An adapter that asks a language model, in rounds, until it has an answer. */
export function modelAdapter(model: Model, options: RoundOptions = {}): Adapter {
  return { evaluate: (prompt, how) => new Evaluation(model, options, prompt, how).run() };
}
