import type { Pass } from "./pass.ts";
import { nextWakeup, READ_INBOX, type Wakeup } from "./wakeups.ts";

/** What wakes the body next, apart from its steps. Asks for the mail where that has to be read first (P5). */
export function wakeupOf(pass: Pass): "cancel" | "deadline" | Wakeup | null {
  const { mailbox, calls } = pass;
  const { deadline } = pass.row;
  if (pass.cancelling !== null) return null;
  if (mailbox.cancel !== null) return "cancel";
  if (pass.body.isCompensating || (deadline === null && !calls.hasWaits)) return null;
  const now = pass.ports.clock.now();
  if (deadline !== null && now >= deadline) return "deadline";
  if (!calls.hasWaits) return null;
  const wakeup = nextWakeup({ calls: calls.waits(), inbox: mailbox.rows, now, inboxReadAt: mailbox.readAt });
  if (wakeup !== READ_INBOX) return wakeup;
  askForMail(pass);
  return null;
}

/** Asks once; what comes is told to the pass. */
export function askForMail(pass: Pass): void {
  if (pass.mailbox.isBeingRead) return;
  pass.mailbox.isBeingRead = true;
  pass.ports.readMail(pass);
}
