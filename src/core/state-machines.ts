// The state machines of Pawl
// Beside that of a run (`transition.ts`): what a run is made of. The words are those of the views that fold the journal, so a table that is wrong
// about one of them shows in every run.
import type { StateMachine } from "./state-machine.ts";
import { RUN } from "./transition.ts";

/** What a step is, in the words of the state document. */
export type StepState = "pending" | "in_progress" | "done" | "failed" | "skipped" | "compensated";

const STEP: StateMachine<StepState> = {
  name: "step",
  initial: "pending",
  edges: {
    pending: ["in_progress", "skipped"],
    // A step that was under way when its run was stopped is undone all the same.
    in_progress: ["done", "failed", "compensated"],
    done: ["compensated"],
    // It blocks until a person has it tried again or skipped; what may have happened in spite of its error is undone.
    failed: ["in_progress", "skipped", "compensated"],
    skipped: [],
    compensated: [],
  },
};

/** What became of an action outside, as `run.effects()` says it. */
export type EffectState = "planned" | "executed" | "compensated" | "unknown" | "failed";

export const EFFECT: StateMachine<EffectState> = {
  name: "effect",
  initial: "planned",
  edges: {
    // One that has no outcome when its run is stopped is looked for and undone.
    planned: ["executed", "unknown", "failed", "compensated"],
    executed: ["compensated"],
    // A person or a detector finds out: it is tried again, was done, or cannot have been.
    unknown: ["planned", "executed", "failed", "compensated"],
    failed: [],
    compensated: [],
  },
};

/** What became of a question to people. */
export type ApprovalState =
  | "requested"
  | "approved"
  | "denied"
  | "changes_requested"
  | "expired"
  | "cancelled"
  | "superseded";

export const APPROVAL: StateMachine<ApprovalState> = {
  name: "approval",
  initial: "requested",
  edges: {
    // Cancelled: its run ended first. Superseded: its run went on as another generation, which asks anew.
    requested: ["approved", "denied", "changes_requested", "expired", "cancelled", "superseded"],
    approved: [],
    denied: [],
    changes_requested: [],
    expired: [],
    cancelled: [],
    superseded: [],
  },
};

/** What became of a message to a run. */
type MessageState = "queued" | "invisible" | "acknowledged" | "dead";

const MESSAGE: StateMachine<MessageState> = {
  name: "message",
  initial: "queued",
  edges: {
    queued: ["invisible", "dead"],
    // A pass has taken it and has not written that down yet: a crash gives it back.
    invisible: ["acknowledged", "queued", "dead"],
    acknowledged: [],
    // Its run ended without it.
    dead: [],
  },
};

/** What becomes of an alert. */
export type AlertState = "firing" | "acknowledged" | "resolved";

export const ALERT: StateMachine<AlertState> = {
  name: "alert",
  initial: "firing",
  edges: {
    firing: ["acknowledged", "resolved"],
    // Somebody has it: nobody is told again.
    acknowledged: ["resolved"],
    // If it comes again, that is another alert.
    resolved: [],
  },
};

/** Every table, for whoever draws or checks them. */
export const STATE_MACHINES: readonly StateMachine[] = [RUN, STEP, EFFECT, APPROVAL, MESSAGE, ALERT];
