// What cases call the entries of a journal: the words of people who think of tools and checkpoints, and the journal's own.
import type { ApprovalDecided, ApprovalEscalated } from "../../core/approval-request.ts";
import {
  CALLS,
  ENDS,
  type Entry,
  entryKind,
  isStepSuccess,
  MARKS,
  NOTES,
  OUTCOMES,
  type StepFailed,
} from "../../core/journal.ts";

type Test = (entry: Entry) => boolean;

const of =
  (...types: readonly string[]): Test =>
  ({ type }) =>
    types.includes(type);

const decided =
  (decision: string): Test =>
  ({ type, payload }) =>
    type === "approval.decided" && (payload as ApprovalDecided).decision === decision;

const isBegun = of("step.started", "effect.planned");
const isDone: Test = ({ type }) => isStepSuccess(type);
const isFinalFailure: Test = (entry) => entry.type === "step.failed" && entryKind(entry) === "outcome";
const isEscalated: Test = ({ type, payload }) =>
  type === "approval.escalated" && (payload as ApprovalEscalated).event !== "reminder";

/** Of those who were asked, nobody answered in time: others are asked, or it has expired. */
const isTimeout: Test = (entry) =>
  decided("expired")(entry) || (isEscalated(entry) && (entry.payload as ApprovalEscalated).action !== "notify");

const WORDS: Readonly<Record<string, Test>> = {
  step_completed: isDone,
  tool_call: isBegun,
  tool_result: (entry) => isDone(entry) || isFinalFailure(entry),
  tool_success: isDone,
  tool_failure: of("step.failed"),
  // Every outcome is one: it is durable before the body goes on to act.
  checkpoint: (entry) => isDone(entry) || of("checkpoint", "approval.requested")(entry),
  retry: ({ type, payload }) => type === "step.failed" && (payload as StepFailed).retryAt !== null,
  approval_request: of("approval.requested"),
  approval_decision: of("approval.decided"),
  approval_granted: decided("approved"),
  approval_denied: decided("denied"),
  approval_escalated: isEscalated,
  approval_timeout: isTimeout,
  signal: of("signal.received"),
  cancel: of("run.cancelling"),
  compensation: of("run.compensating", "effect.compensated"),
  deploy: of("version.changed"),
};

const OWN = [...CALLS, ...OUTCOMES, ...NOTES, ...MARKS, ...ENDS];

/** Each word, and which entries it means. */
export const TRACE_WORDS: Readonly<Record<string, Test>> = {
  ...Object.fromEntries(OWN.flatMap((type) => [type, type.replace(".", "_")].map((word) => [word, of(type)]))),
  step_started: isBegun,
  ...WORDS,
};
