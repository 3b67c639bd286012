import type { Entry } from "../../core/journal.ts";
import { publicStatus, type RunState } from "../../core/transition.ts";

/** What a case may expect a run to be in the end. A run can be several of them: waiting and escalated, failed and compensated. */
export const CASE_STATUSES = [
  "running",
  "waiting",
  "parked",
  "escalated",
  "compensated",
  "succeeded",
  "failed",
  "cancelled",
] as const;

export type CaseStatus = (typeof CASE_STATUSES)[number];

/** Everything that a run is, in the words of cases. */
export function statusesOf(state: RunState, journal: readonly Entry[]): CaseStatus[] {
  const statuses: CaseStatus[] = [publicStatus(state) as CaseStatus];
  if (state === "parked") statuses.push("parked");
  const isOpen = statuses[0] === "waiting";
  if (isOpen && openEscalation(journal)) statuses.push("escalated");
  const wasUndone = journal.some(({ type }) => type === "effect.compensated");
  if (!isOpen && wasUndone) statuses.push("compensated");
  return statuses;
}

/** The alternatives of `waiting_or_escalated`, or of a list. */
export function alternatives(expected: string | readonly string[]): readonly string[] {
  return typeof expected === "string" ? expected.split("_or_") : expected;
}

/** Whether an approval that is still open was passed on to others, or its first ones are out of time. */
function openEscalation(journal: readonly Entry[]): boolean {
  const decided = new Set(journal.filter(({ type }) => type === "approval.decided").map(({ key }) => key));
  return journal.some(({ type, key, payload }) => {
    const { event, action } = (payload ?? {}) as { readonly event?: string; readonly action?: string | null };
    return (
      type === "approval.escalated" &&
      !decided.has(key) &&
      (event !== "level" || action !== "notify") &&
      event !== "reminder"
    );
  });
}
