// What a change of a counter comes to: the same in every store that counts in this process.
import { type CounterRefusal, counterKey, countersOf } from "../core/counters.ts";
import type { CounterChange, RunCommit } from "../core/store.ts";

/** The value after a change. */
export function counted({ by, atLeast }: CounterChange, value: number): number {
  return atLeast === true ? Math.max(value, by) : value + by;
}

/** The limit that holds for a change: its own, or what that was raised to. */
export function limitOf({ max, maxFrom, of }: CounterChange, current: (key: string) => number): number | null {
  if (max === null || maxFrom === undefined) return max;
  return Math.max(max, current(counterKey({ key: maxFrom, ...(of !== undefined && { of }) })));
}

/** Giving back is always allowed, also above a limit that was lowered meanwhile. */
export function isPast({ by }: CounterChange, sum: number, max: number | null): boolean {
  return sum < 0 || (by > 0 && max !== null && sum > max);
}

export function refusalOf({ run, counters }: RunCommit, at: number, value: number, max: number | null): CounterRefusal {
  return { run, kind: "refused", why: "counter", key: counters?.[at]?.key ?? "", at, value, max };
}

/** The keys of all counters that belong to a run, as a range of text by its bytes. */
export function counterRange(run: string): { readonly from: string; readonly to: string } {
  const from = countersOf(run);
  return { from, to: `${from.slice(0, -1)}0` };
}

/** What is behind all keys that begin with this. */
export function endOfPrefix(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}
