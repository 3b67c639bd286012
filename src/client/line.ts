// What a run that could go on at once stands in line for: a slot that others hold, or its turn within a rate.
import { slotLimit } from "../core/flow-control.ts";
import { LIMITS } from "../core/limits.ts";
import type { RunRow, Store } from "../core/store.ts";
import { isTerminal } from "../core/transition.ts";

export interface Line {
  readonly kind: "slot" | "rate";
  /** The workflow, and behind a slash the key. */
  readonly name: string;
  /** How many may hold the slot; `null` for a rate. */
  readonly limit: number | null;
  /** The runs that hold it, newest first, as far as one page goes. */
  readonly holders: readonly string[];
}

/** `null` for a run that nothing keeps from being claimed. */
export async function lineOf(store: Store, row: RunRow): Promise<Line | null> {
  const isReady = row.readyAt !== null && row.owner === null && row.state !== "parked" && !isTerminal(row.state);
  if (row.slot === null || !isReady) return null;
  const { slot } = row;
  const limits = (await store.workers()).flatMap(({ handles }) => slotLimit(handles, slot) ?? []);
  const limit = limits.length === 0 ? null : Math.max(...limits);
  const holders = (await store.runs({ slot, limit: LIMITS.listPageMax })).map(({ id }) => id);
  if (limit !== null && holders.length >= Math.min(limit, LIMITS.listPageMax))
    return { kind: "slot", name: slot, limit, holders };
  return row.rate === null ? null : { kind: "rate", name: row.rate, limit: null, holders: [] };
}
