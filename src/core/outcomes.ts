// Outcomes
// What a recorded outcome does to the call it belongs to; live and in replay alike.
import { PawlError } from "../base/errors.ts";
import { rejectCall } from "./call.ts";
import type { ChildEnded, OutcomeType, SignalReceived, StepFailed } from "./journal.ts";
import type { OpenCalls } from "./open-calls.ts";

/** Outcomes that belong to a call; the others concern the run as a whole. */
export type CallOutcome = Exclude<OutcomeType, "run.started" | "run.continued" | "run.cancelling">;

export function deliverOutcome(
  run: string,
  calls: OpenCalls,
  type: CallOutcome,
  key: string | null,
  payload: unknown,
): void {
  switch (type) {
    case "step.completed":
      return calls.settle(`step.started ${key}`)?.resolve(payload);
    case "step.failed":
      return calls.reject(`step.started ${key}`, (payload as StepFailed).error);
    case "timer.fired":
      return payload === null ? calls.settle(`timer.set ${key}`)?.resolve(undefined) : waitTimedOut(run, calls, key);
    case "signal.received":
      return signalReceived(calls, key, payload as SignalReceived);
    case "child.ended":
      return childEnded(run, calls, key, payload as ChildEnded);
  }
}

function waitTimedOut(run: string, calls: OpenCalls, key: string | null): void {
  const call = calls.settle(`signal.awaited ${key}`);
  if (call?.type !== "signal.awaited") return;
  const { name, fallback } = call.spec;
  if (fallback !== null) return call.resolve(fallback.value);
  const message = `No signal "${name}" reached run ${run} in time. Give waitFor a \`default\`, a longer \`timeout\`, or catch this error.`;
  rejectCall(call, new PawlError("wait_timeout", message, { fields: { run, signal: name } }));
}

function signalReceived(calls: OpenCalls, key: string | null, received: SignalReceived): void {
  if (received.error !== undefined) return calls.reject(`signal.awaited ${key}`, received.error);
  calls.settle(`signal.awaited ${key}`)?.resolve(received.payload);
}

function childEnded(run: string, calls: OpenCalls, key: string | null, ended: ChildEnded): void {
  const id = `child.started ${key}`;
  if (ended.status === "succeeded") return calls.settle(id)?.resolve(ended.value);
  const { child, status } = ended;
  const message = `Child run ${child} (${key}) of run ${run} ${status}. Its error is the cause; \`pawl why ${child}\` tells more.`;
  calls.reject(id, new PawlError("child_failed", message, { fields: { run, child, status }, cause: ended.value }));
}
