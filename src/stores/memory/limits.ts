// Slots and rates: a slot is held by whoever owns a run that needs it, a rate by the runs that began not long ago (I18).
import { rateLimit, slotLimit } from "../../core/flow-control.ts";
import type { Handle } from "../../core/store.ts";
import type { MemoryRun, Tables } from "./tables.ts";

/** Whether nothing speaks against claiming this run but what was claimed before. */
export function isLetIn(tables: Tables, handles: readonly Handle[], { row }: MemoryRun, now: number): boolean {
  if (row.slot === null) return true;
  const slots = slotLimit(handles, row.slot);
  if (slots !== null && holdersOf(tables, row.slot) >= slots) return false;
  const rate = row.rate === null ? null : rateLimit(handles, row.rate);
  return rate == null || startsOf(tables, row.rate as string, now).length < rate.limit;
}

function holdersOf(tables: Tables, slot: string): number {
  return [...tables.runs.values()].filter(({ row }) => row.slot === slot && row.owner !== null).length;
}

/** Until when each start of this rate counts, of those that still do. */
function startsOf({ starts }: Tables, rate: string, now: number): number[] {
  return (starts.get(rate) ?? []).filter((until) => until > now);
}

/** Notes that a run begins; those that no longer count are forgotten. */
export function noteStart(tables: Tables, handles: readonly Handle[], { row }: MemoryRun, now: number): void {
  const limit = row.rate === null ? null : rateLimit(handles, row.rate);
  if (row.rate === null || limit == null) return;
  tables.starts.set(row.rate, [...startsOf(tables, row.rate, now), now + limit.perMs]);
}

export function forgetStarts(tables: Tables, now: number): void {
  for (const rate of [...tables.starts.keys()]) {
    const left = startsOf(tables, rate, now);
    if (left.length > 0) tables.starts.set(rate, left);
    else tables.starts.delete(rate);
  }
}

/** When starts that ready runs may be waiting for no longer count. */
export function nextStarts(tables: Tables, now: number): number[] {
  const rates = new Set([...tables.runs.values()].flatMap(({ row }) => (row.readyAt === null ? [] : [row.rate])));
  return [...rates].flatMap((rate) => (rate === null ? [] : startsOf(tables, rate, now)));
}
