// Wake-ups
// Chooses the one thing that wakes a run next, from what is due, what has arrived and what was asked of it. Pure: the pass delivers it.
import type { Call, ChildCall, SignalCall, TimerCall } from "./call.ts";
import type { InboxRow } from "./store.ts";

export type Wakeup =
  | { readonly kind: "timer"; readonly call: TimerCall }
  | { readonly kind: "timeout"; readonly call: SignalCall }
  | { readonly kind: "signal"; readonly call: SignalCall; readonly row: InboxRow }
  | { readonly kind: "child"; readonly call: ChildCall; readonly row: InboxRow };

/** A wait is over its time, but the inbox was read before that: a signal may have come first (P5). */
export const READ_INBOX = "read-inbox";

export interface Surroundings {
  readonly calls: Iterable<Call>;
  readonly inbox: readonly InboxRow[];
  readonly now: number;
  /** Store time at which the inbox was last read. */
  readonly inboxReadAt: number;
}

/**
 * Timers go by due time, inbox rows among themselves by arrival; the two are compared by time alone. So a signal that was acknowledged after a
 * wait's time was over does not beat its timeout, whoever was there to notice.
 */
export function nextWakeup(around: Surroundings): Wakeup | typeof READ_INBOX | null {
  const calls = [...around.calls];
  const due = earliestDue(calls, around.now);
  const mail = firstMatch(calls, around.inbox);
  if (mail !== null && (due === null || mail.row.at <= (due.due as number))) return mail;
  if (due === null) return null;
  if (due.type === "timer.set") return { kind: "timer", call: due };
  return around.inboxReadAt >= (due.due as number) ? { kind: "timeout", call: due } : READ_INBOX;
}

function earliestDue(calls: readonly Call[], now: number): TimerCall | SignalCall | null {
  let first: TimerCall | SignalCall | null = null;
  for (const call of calls) {
    if (call.type !== "timer.set" && call.type !== "signal.awaited") continue;
    if (call.due === null || call.due > now) continue;
    if (first === null || call.due < (first.due as number)) first = call;
  }
  return first;
}

type MailWakeup = Extract<Wakeup, { row: InboxRow }>;

/** The oldest signal goes to the newest open wait of its name, so that an abandoned race loser does not eat it (P5). */
function firstMatch(calls: readonly Call[], inbox: readonly InboxRow[]): MailWakeup | null {
  for (const row of inbox) {
    if (row.kind === "signal") {
      const call = calls.findLast(
        (one): one is SignalCall => one.type === "signal.awaited" && one.spec.name === row.name,
      );
      if (call !== undefined) return { kind: "signal", call, row };
    }
    if (row.kind === "child") {
      const call = calls.find(
        (one): one is ChildCall => one.type === "child.started" && childMessageId(one.child) === row.id,
      );
      if (call !== undefined) return { kind: "child", call, row };
    }
  }
  return null;
}

/** A child's one message to its parent. The child's id includes the parent's generation, so an old child cannot answer a new call (P10). */
export function childMessageId(child: string): string {
  return `child:${child}`;
}
