// Calls
// What a body is waiting for. A call is open from the moment it is issued until its outcome's turn; open calls in order of issue
// are the whole of a run's waiting (P1).
import type { CallOptions, StepInfo } from "./context.ts";
import type { RetryPolicy } from "./retry.ts";
import type { StandardSchema } from "./schema.ts";
import type { Workflow } from "./workflow.ts";

interface OpenCall {
  readonly key: string;
  readonly promise: Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  open: boolean;
}

export interface StepCall extends OpenCall {
  readonly type: "step.started";
  readonly name: string;
  readonly fn: (info: StepInfo) => unknown;
  readonly timeoutMs: number;
  readonly retry: RetryPolicy;
  readonly recovery: "rerun" | "ask" | "fail";
  /** Encoded arguments and their digest, for the form that records them. */
  readonly input: { readonly value: unknown; readonly digest: string } | null;
  /** What outside systems may use to recognise a repeated attempt. */
  readonly idempotencyKey: string;
  /** Attempts begun so far, failures among them, and when the next one is due. */
  attempt: number;
  failures: number;
  retryAt: number | null;
}

export interface TimerCall extends OpenCall {
  readonly type: "timer.set";
  /** As first recorded; a recomputed duration does not move it (B44). */
  due: number;
}

export interface SignalCall extends OpenCall {
  readonly type: "signal.awaited";
  readonly name: string;
  due: number | null;
  readonly fallback: { readonly value: unknown } | null;
  readonly schema: StandardSchema | undefined;
}

export interface ChildCall extends OpenCall {
  readonly type: "child.started";
  child: string;
  readonly workflow: Workflow;
  readonly input: unknown;
  readonly options: CallOptions;
  readonly digest: string;
  readonly detached: boolean;
}

export type Call = StepCall | TimerCall | SignalCall | ChildCall;

/** The promise side of a call. */
export function openCall(key: string): OpenCall {
  let resolve: (value: unknown) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<unknown>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { key, promise, resolve, reject, open: true };
}

/** Rejects without ever being an unhandled rejection: the body may look at it later, or never (P11). */
export function rejectCall(call: OpenCall, error: unknown): void {
  call.promise.catch(() => {});
  call.reject(error);
}

/** A call that needs nothing done in this process. */
export function isWaiting(call: Call): boolean {
  return call.type !== "step.started" || call.retryAt !== null;
}

/** When a call is due by itself, if ever. */
export function dueOf(call: Call): number | null {
  if (call.type === "timer.set" || call.type === "signal.awaited") return call.due;
  return call.type === "step.started" ? call.retryAt : null;
}
