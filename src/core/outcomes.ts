// Outcomes
// What a recorded outcome does to the call it belongs to; live and in replay alike.
import { PawlError } from "../base/errors.ts";
import type { ApprovalDecided } from "./approval-request.ts";
import { settleApproval } from "./approvals.ts";
import { type ApprovalCall, type Call, type CallbackCall, rejectCall, type SignalCall } from "./call.ts";
import type { CallbackEnded } from "./callback.ts";
import { settleCallback } from "./callbacks.ts";
import type { CallType, ChildEnded, OutcomeType, SignalReceived, StepFailed } from "./journal.ts";
import type { OpenCalls } from "./open-calls.ts";
import { UndoableCall } from "./undoable-call.ts";

/** Outcomes that belong to a call; the others concern the run as a whole. */
export type CallOutcome = Exclude<OutcomeType, "run.started" | "run.continued" | "run.cancelling" | "run.compensating">;

/** Settles the call that an outcome belongs to; false if no such call is open. */
export function deliverOutcome(
  run: string,
  calls: OpenCalls,
  type: CallOutcome,
  key: string | null,
  payload: unknown,
): boolean {
  const call = key === null ? undefined : calls.settle(callTypeOf(type, payload), key);
  if (call === undefined || !mayEndAs(call, type)) return false;
  if (call instanceof UndoableCall) call.ended(type, payload);
  switch (type) {
    case "step.completed":
    case "effect.executed":
    case "effect.compensated":
      call.resolve(payload);
      break;
    case "step.failed":
      rejectCall(call, (payload as StepFailed).error);
      break;
    case "timer.fired":
      if (call.type === "signal.awaited") waitTimedOut(run, call);
      else call.resolve(undefined);
      break;
    case "signal.received":
      signalReceived(call, payload as SignalReceived);
      break;
    case "child.ended":
      childEnded(run, call, payload as ChildEnded);
      break;
    case "approval.decided":
      settleApproval(run, call as ApprovalCall, payload as ApprovalDecided);
      break;
    case "callback.ended":
      settleCallback(run, call as CallbackCall, payload as CallbackEnded);
  }
  return true;
}

/** Whether such a call ends like that: what an effect has done is not the result of a step, nor the other way round (B63). */
function mayEndAs(call: Call, type: CallOutcome): boolean {
  return call.type !== "step.started" || type === "step.failed" || type === call.endsAs;
}

/** The type of the call that an outcome ends. */
export function callTypeOf(type: CallOutcome, payload: unknown): CallType {
  switch (type) {
    case "step.completed":
    case "step.failed":
    case "effect.executed":
    case "effect.compensated":
      return "step.started";
    case "timer.fired":
      return payload === null ? "timer.set" : "signal.awaited";
    case "signal.received":
      return "signal.awaited";
    case "child.ended":
      return "child.started";
    case "approval.decided":
      return "approval.requested";
    case "callback.ended":
      return "callback.opened";
  }
}

function waitTimedOut(run: string, call: SignalCall): void {
  const { name, fallback } = call.spec;
  if (fallback !== null) return call.resolve(fallback.value);
  const message = `No signal "${name}" reached run ${run} in time. Give waitFor a \`default\`, a longer \`timeout\`, or catch this error.`;
  rejectCall(call, new PawlError("wait_timeout", message, { fields: { run, signal: name } }));
}

function signalReceived(call: Call, received: SignalReceived): void {
  if (received.error === undefined) call.resolve(received.payload);
  else rejectCall(call, received.error);
}

function childEnded(run: string, call: Call, { child, status, value }: ChildEnded): void {
  if (status === "succeeded") return call.resolve(value);
  const message = `Child run ${child} (${call.key}) of run ${run} ${status}. Its error is the cause; \`pawl why ${child}\` tells more.`;
  rejectCall(call, new PawlError("child_failed", message, { fields: { run, child, status }, cause: value }));
}
