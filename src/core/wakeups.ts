// Wake-ups
// Chooses the one thing that wakes a run next, from what is due, what has arrived and what was asked of it. Pure: the pass delivers it.
import type { ApprovalDecided } from "./approval-request.ts";
import { type ApprovalEvent, nextEvent } from "./approval-times.ts";
import type { ApprovalCall, Call, CallbackCall, ChildCall, SignalCall, TimerCall } from "./call.ts";
import type { InboxRow } from "./store.ts";

export type Wakeup = PlainWakeup | ApprovalWakeup | CallbackWakeup;

export type PlainWakeup =
  | { readonly kind: "timer"; readonly call: TimerCall }
  | { readonly kind: "timeout"; readonly call: SignalCall }
  | { readonly kind: "signal"; readonly call: SignalCall; readonly row: InboxRow }
  | { readonly kind: "child"; readonly call: ChildCall; readonly row: InboxRow };

/** Somebody has decided, or something fell due; `decided: null`: this vote cannot be read. */
export type ApprovalWakeup =
  | {
      readonly kind: "decision";
      readonly call: ApprovalCall;
      readonly row: InboxRow;
      readonly decided: ApprovalDecided | null;
    }
  | { readonly kind: "approval"; readonly call: ApprovalCall; readonly event: ApprovalEvent };

/** Somebody has answered, or nobody has in time. */
export type CallbackWakeup =
  | { readonly kind: "answer"; readonly call: CallbackCall; readonly row: InboxRow }
  | { readonly kind: "unanswered"; readonly call: CallbackCall };

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
  if (around.inboxReadAt < (due.due as number)) return READ_INBOX;
  if (due.type === "callback.opened") return { kind: "unanswered", call: due };
  return due.type === "signal.awaited" ? { kind: "timeout", call: due } : fallenDue(due, around.now);
}

function fallenDue(call: ApprovalCall, now: number): ApprovalWakeup | null {
  const event = call.request === null ? null : nextEvent(call.request, call.until, now);
  return event === null ? null : { kind: "approval", call, event };
}

type TimedCall = TimerCall | SignalCall | ApprovalCall | CallbackCall;

function earliestDue(calls: readonly Call[], now: number): TimedCall | null {
  let first: TimedCall | null = null;
  for (const call of calls) {
    if (call.type === "step.started" || call.type === "child.started") continue;
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
    if (row.kind === "approval") {
      const decision = decisionBy(calls, inbox, row);
      if (decision !== null) return decision;
    }
    if (row.kind === "callback") {
      // One that came too late was told so, whatever the time here.
      const call = calls.find(
        (one): one is CallbackCall =>
          one.type === "callback.opened" && one.id === row.name && row.at <= (one.due ?? row.at),
      );
      if (call !== undefined) return { kind: "answer", call, row };
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

/** The vote that decides, if this is the one: those before it count with it. */
function decisionBy(calls: readonly Call[], inbox: readonly InboxRow[], row: InboxRow): MailWakeup | null {
  const call = calls.find(
    (one): one is ApprovalCall => one.type === "approval.requested" && one.request?.id === row.name,
  );
  if (call === undefined) return null;
  if (call.read(row) === null) return { kind: "decision", call, row, decided: null };
  const decided = call.decisionIn(inbox.slice(0, inbox.indexOf(row) + 1));
  return decided === null ? null : { kind: "decision", call, row, decided };
}

/** A child's one message to its parent. The child's id includes the parent's generation, so an old child cannot answer a new call (P10). */
export function childMessageId(child: string): string {
  return `child:${child}`;
}
