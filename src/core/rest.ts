// Rest
// How a run waits: in memory for a little while if it is due soon, otherwise as a row.
import { LIMITS } from "./limits.ts";
import type { Pass } from "./pass.ts";
import type { RowPatch, RunRow } from "./store.ts";
import { transition } from "./transition.ts";

/**
 * A run that wakes soon is dearer to load again than to keep, while there is room for others (P33). One that waits for a child that runs
 * right here stays in any case: it would be loaded again for each of its children, and they do not run for ever.
 */
export function lingers({ calls, ports, row }: Pass): boolean {
  // Others may need its slot: who waits holds none (I18).
  if (row.slot !== null) return false;
  const horizon = ports.clock.now() + LIMITS.lingerMs;
  if (ports.mayLinger() && (calls.nextDue(null) ?? Number.POSITIVE_INFINITY) <= horizon) return true;
  for (const call of calls.waits()) if (call.type === "child.started" && ports.isHere(call.child)) return true;
  return false;
}

/** The row of a run that leaves memory until something wakes it. */
export function suspension({ id, body, calls, draft, row, cancelling }: Pass): RowPatch {
  const resting = calls.hasWaits ? "waiting" : "retrying";
  const state = transition(id, "running", body.isCompensating ? "compensating" : resting);
  const { head, hash } = draft.chain;
  return {
    state,
    release: true,
    readyAt: null,
    wakeAt: calls.nextDue(cancelling === null && !body.isCompensating ? row.deadline : null),
    claims: 0,
    head,
    headHash: hash,
    ...freed(row),
  };
}

/** What the end of a stay in memory says of the run's slot. */
export function freed({ slot }: Pick<RunRow, "slot">): RowPatch {
  return slot === null ? {} : { frees: true };
}

/** Sets the pass's alarm to the earliest of everything that falls due, `retries` only where they would begin. */
export function setAlarm(pass: Pass, { retries }: { readonly retries: boolean }): void {
  const { calls, row, ports, mailbox } = pass;
  // What is due may have to wait for the mail that was asked for: its coming is the alarm then.
  // After a cancel nothing falls due any more but what undoes things, the deadline that led to it included.
  if (mailbox.isBeingRead) return;
  const { isCompensating } = pass.body;
  const deadline = isCompensating ? null : row.deadline;
  const due = retries ? calls.nextDue(deadline) : calls.nextWakeup(deadline);
  ports.alarms.set(pass, pass.cancelling === null || isCompensating ? due : null);
}
