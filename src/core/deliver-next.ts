import { recordApprovalWakeup } from "./approvals.ts";
import { recordCallbackWakeup } from "./callbacks.ts";
import { recordCompensating } from "./compensation.ts";
import { recordCancel } from "./endings.ts";
import type { OutcomeType } from "./journal.ts";
import type { Pass } from "./pass.ts";
import { wakeupOf } from "./pass-wakeup.ts";
import { settleSpending } from "./spending.ts";
import { type Recorded, recordWakeup } from "./wakeup-delivery.ts";
import type { Wakeup } from "./wakeups.ts";

/**
 * Gives a live body the one outcome of its turn: what a transaction has recorded before all else, then a cancel, then what lenient replay has found, then steps' outcomes and
 * wake-ups by turns: a loop of steps that are over at once must not keep a timer or a signal waiting for ever (I12). It joins the journal
 * here, so that the calls it causes follow it (P2).
 */
export function deliverNext(pass: Pass): void {
  const committed = pass.steps.takeCommitted();
  if (committed !== null) {
    if (committed.call.spending !== null) settleSpending(pass, committed.call);
    pass.delivered("step.completed", committed.call.key, committed.payload);
    pass.now = committed.at;
    return;
  }
  const wakeup = wakeupOf(pass);
  if (wakeup === "cancel" || wakeup === "deadline")
    return pass.delivered("run.cancelling", null, recordCancel(pass, wakeup));
  if (pass.body.failed !== null)
    return pass.delivered("run.compensating", null, recordCompensating(pass, pass.body.failed));
  if (pass.body.result !== null) return;
  const found = pass.replay.takeFound();
  if (found !== undefined) {
    pass.now = Math.max(pass.now, found.at);
    pass.body.deliver(found.type as OutcomeType, found.key, found.payload);
    return;
  }
  const isWakeupNext = wakeup !== null && pass.steps.hadTurn;
  const outcome = isWakeupNext ? undefined : pass.steps.takeOutcome();
  pass.steps.hadTurn = outcome !== undefined;
  if (outcome !== undefined) {
    const { call, type, text, payload } = outcome;
    if (call.spending !== null) settleSpending(pass, call);
    pass.draft.appendText(pass.ports.clock.now(), type, call.key, text);
    // In a dry run nothing was done.
    const isReal = type === "effect.executed" && pass.dry === null;
    const shared = isReal ? call.sharedAction(pass.seed) : null;
    if (shared !== null) pass.draft.onDurable(() => pass.ports.executed(pass, call.key, shared));
    pass.delivered(type, call.key, payload);
  } else if (wakeup !== null) {
    const recorded = record(pass, wakeup);
    if (recorded !== null) pass.delivered(recorded.type, recorded.key, recorded.payload);
  }
}

function record(pass: Pass, wakeup: Wakeup): Recorded | null {
  switch (wakeup.kind) {
    case "decision":
    case "approval":
      return recordApprovalWakeup(pass, wakeup);
    case "answer":
    case "unanswered":
      return recordCallbackWakeup(pass, wakeup);
    default:
      return recordWakeup(pass, wakeup);
  }
}
