// Counters
// How those that belong to a run are named, and what a store says of a change that it refuses.
import type { CounterChange } from "./store.ts";

export interface CounterRefusal {
  readonly run: string;
  readonly kind: "refused";
  readonly why: "counter";
  readonly key: string;
  /** Which of the part's changes it was, counted from zero. */
  readonly at: number;
  /** The counter as it was before this change, with those of the part that precede it. */
  readonly value: number;
  /** The limit that held. */
  readonly max: number | null;
}

/** The key that a counter is stored under, and listed by. Run ids have no slash. */
export function counterKey({ key, of }: Pick<CounterChange, "key" | "of">): string {
  return of === undefined ? key : `${countersOf(of)}${key}`;
}

/** What the keys of all counters that belong to runs begin with. */
export const OF_RUNS = "of/";

/** What the keys of all counters that belong to a run begin with. */
export function countersOf(run: string): string {
  return `${OF_RUNS}${run}/`;
}
