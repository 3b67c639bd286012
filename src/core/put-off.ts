// Starts that are put off
// When a run may begin is in its first entry, not only in its row: a run that was parked, rewritten or left by a dead worker before its time is
// claimable at once, and whoever claims it must know that it is too early (I13).
import type { Continued, Entry, RunStarted } from "./journal.ts";

/** What may be recorded of a run whose body has not begun. */
export const BEFORE_BODY: ReadonlySet<string> = new Set([
  "run.started",
  "run.continued",
  "run.forked",
  "run.parked",
  "run.resolved",
  "version.changed",
]);

/** Whether its body may have done anything. */
export function hasBegun(entries: readonly Entry[]): boolean {
  return !entries.every(({ type }) => BEFORE_BODY.has(type));
}

/** Store time before which a run must not begin; `null`: it was not put off, or has begun. */
export function notBeforeIn(entries: readonly Entry[]): number | null {
  if (hasBegun(entries)) return null;
  const times = entries.map(({ payload }) => (payload as Partial<RunStarted & Continued> | null)?.notBefore);
  return times.findLast((time) => time !== undefined) ?? null;
}
