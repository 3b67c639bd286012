// The times of an approval
// What falls due while nobody decides. Everything is a function of the recorded request and of the due time up to which events have happened,
// so that each happens once, in due order, whoever was away (S4-38).
import type { ApprovalRequested, RequestedLevel } from "./approval-request.ts";

export type ApprovalEvent =
  | { readonly kind: "level"; readonly due: number; readonly level: RequestedLevel; readonly number: number }
  | { readonly kind: "reminder"; readonly due: number }
  /** The first ones asked are out of time, and it goes on with others. */
  | { readonly kind: "timeout"; readonly due: number }
  | { readonly kind: "expiry"; readonly due: number };

type Times = Pick<ApprovalRequested, "at" | "remindMs" | "levels" | "timeoutAt" | "expiresAt">;

/** When something falls due after `until`; `null` if nothing does any more. */
export function nextDue(times: Times, until: number): number | null {
  return nextEvent(times, until, Number.NEGATIVE_INFINITY)?.due ?? null;
}

/** What falls due first after `until`. Of several reminders that `now` has passed, the last one stands for all: the others would tell nothing. */
export function nextEvent(times: Times, until: number, now: number): ApprovalEvent | null {
  const { levels, timeoutAt, expiresAt } = times;
  const index = levels.findIndex(({ due }) => due > until);
  const level = levels[index];
  // With the last level at its very time, the expiry is still to come when that has happened.
  const isLevelLast = levels.at(-1)?.due === expiresAt;
  const others: ApprovalEvent[] = [
    ...(level === undefined ? [] : [{ kind: "level", due: level.due, level, number: index + 1 } as const]),
    ...(timeoutAt > until && timeoutAt < expiresAt ? [{ kind: "timeout", due: timeoutAt } as const] : []),
    ...(expiresAt > until || isLevelLast ? [{ kind: "expiry", due: expiresAt } as const] : []),
  ];
  // At the same moment a level comes before the rest: it may decide.
  const [first] = others.sort((a, b) => a.due - b.due);
  if (first === undefined) return null;
  const reminder = reminderAfter(times, until, Math.min(first.due - 1, now));
  return reminder !== null && reminder < first.due ? { kind: "reminder", due: reminder } : first;
}

/** The first reminder after `until`, or the last one up to `latest` if more have passed. */
function reminderAfter({ at, remindMs }: Times, until: number, latest: number): number | null {
  if (remindMs === null) return null;
  const first = at + (Math.floor((until - at) / remindMs) + 1) * remindMs;
  const last = at + Math.floor((latest - at) / remindMs) * remindMs;
  return Math.max(first, last);
}

/** When the approval is decided without a person: what people say later does not count. */
export function closesAt({ levels, expiresAt }: Times): number {
  const deciding = levels.find(({ action }) => action === "approve" || action === "deny" || action === "cancel");
  return Math.min(expiresAt, deciding?.due ?? expiresAt);
}
