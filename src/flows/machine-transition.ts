// Transitions
// What a step of a machine decides: plain data, recorded as the outcome of its step. A step says beforehand which of them it may return.
import type { Duration } from "../core/retry.ts";

/** What a step may do beside going on to its next steps and failing, which every step may. */
export const WORDS = ["complete", "wait_for_approval", "wait", "retry", "compensate", "cancel", "escalate"] as const;

export type TransitionWord = (typeof WORDS)[number];

/** Goes on to another step. `patch` changes fields of the state; all others stay. */
export interface Continue<S, N extends string> {
  readonly transition: "continue";
  readonly next: N;
  readonly patch?: Partial<S>;
}

/** Ends the run as failed and undoes what it has done. The reason becomes the stop reason. */
export interface Fail {
  readonly transition: "fail";
  readonly reason: string;
}

/** Ends the run with a result. */
export interface Complete<S, C extends string, O> {
  readonly transition: "complete" & C;
  readonly output: O;
  readonly patch?: Partial<S>;
}

/** Goes on to a step that asks people. */
export interface WaitForApproval<S, N extends string, C extends string> {
  readonly transition: "wait_for_approval" & C;
  /** The step that asks. */
  readonly approval: N;
  readonly patch?: Partial<S>;
}

/** Waits for a time, or for a signal, and then goes on. */
export interface Wait<S, N extends string, C extends string> {
  readonly transition: "wait" & C;
  readonly next: N;
  /** How long. Give one of `for`, `until` and `signal`. */
  readonly for?: Duration;
  readonly until?: Date | number;
  /** The name of a signal. */
  readonly signal?: string;
  /** The field of the state that gets what came with the signal. */
  readonly into?: keyof S & string;
  /** How long to wait for the signal; then the run goes on to `late`, or fails with `wait_timeout`. */
  readonly timeout?: Duration;
  readonly late?: N;
  readonly patch?: Partial<S>;
}

/** Runs the step again after a while, as often as its `retry` allows. */
export interface RetryLater<C extends string> {
  readonly transition: "retry" & C;
  readonly reason: string;
  /** Milliseconds, or a duration. Default: the backoff of the step's `retry`. */
  readonly delay?: Duration;
}

/** Ends the run as failed and undoes one action, or all. */
export interface Compensate<C extends string> {
  readonly transition: "compensate" & C;
  readonly reason: string;
  /** The effect that is undone, by its key in the ledger: the step's name. Default: all of them. */
  readonly action?: string;
  /** Those that came after it are undone first. Default false: exactly that one. */
  readonly later?: boolean;
}

/** Ends the run as cancelled. */
export interface Cancel<C extends string> {
  readonly transition: "cancel" & C;
  readonly reason: string;
  /** Undo what was done. Default false. */
  readonly compensate?: boolean;
}

/** Asks the people of the machine's `escalation`. If they approve, the run goes on; otherwise it fails. */
export interface Escalate<S, N extends string, C extends string> {
  readonly transition: "escalate" & C;
  readonly reason: string;
  /** Where it goes on. Default: this step runs again. */
  readonly next?: N;
  readonly patch?: Partial<S>;
}

/** What a step with these next steps, that can do this, may return. */
export type Transition<S, N extends string = string, C extends string = TransitionWord, O = unknown> =
  | Continue<S, N>
  | Fail
  | Complete<S, C, O>
  | WaitForApproval<S, N, C>
  | Wait<S, N, C>
  | RetryLater<C>
  | Compensate<C>
  | Cancel<C>
  | Escalate<S, N, C>;
