// Slots and rates: a slot is held by whoever owns a run that needs it, a rate by the runs that began not long ago (I18).
import { rateLimit, slotLimit } from "../../core/flow-control.ts";
import type { Handle } from "../../core/store.ts";
import type { MemoryRun, Start, Tables } from "./tables.ts";

/**
 * How many each slot and each rate still lets in, counted once and then down as runs are taken: ten thousand may wait for one slot. Must not outlive
 * the claim.
 */
export class Room {
  readonly #tables: Tables;
  readonly #handles: readonly Handle[];
  readonly #now: number;
  readonly #held: Map<string, number>;
  readonly #begun = new Map<string, number>();

  constructor(tables: Tables, handles: readonly Handle[], now: number) {
    this.#tables = tables;
    this.#handles = handles;
    this.#now = now;
    this.#held = holders(tables);
  }

  /** Whether nothing speaks against claiming this run but what was claimed before. */
  lets({ row: { slot, rate } }: MemoryRun): boolean {
    if (slot === null) return true;
    const slots = slotLimit(this.#handles, slot);
    if (slots !== null && (this.#held.get(slot) ?? 0) >= slots) return false;
    const limit = rate === null ? null : rateLimit(this.#handles, rate);
    return limit == null || this.#begunOf(rate as string, limit.perMs) < limit.limit;
  }

  /** This run is taken: it holds its slot, and its start counts from now on. */
  take({ row: { slot, rate } }: MemoryRun): void {
    if (slot !== null) this.#held.set(slot, (this.#held.get(slot) ?? 0) + 1);
    const limit = rate === null ? null : rateLimit(this.#handles, rate);
    if (rate === null || limit == null) return;
    this.#begun.set(rate, this.#begunOf(rate, limit.perMs) + 1);
    const { starts } = this.#tables;
    const now = this.#now;
    starts.set(rate, [...startsOf(this.#tables, rate, now), { at: now, until: now + limit.perMs }]);
  }

  /** Those of any span of this length around now: what began under a longer one, or by a clock that was set back, does not count for longer. */
  #begunOf(rate: string, perMs: number): number {
    const isNear = ({ at }: Start) => Math.abs(at - this.#now) < perMs;
    const begun = this.#begun.get(rate) ?? startsOf(this.#tables, rate, this.#now).filter(isNear).length;
    this.#begun.set(rate, begun);
    return begun;
  }
}

function holders({ runs }: Tables): Map<string, number> {
  const held = new Map<string, number>();
  for (const { row } of runs.values())
    if (row.slot !== null && row.owner !== null) held.set(row.slot, (held.get(row.slot) ?? 0) + 1);
  return held;
}

/** The starts of this rate that are not over. */
function startsOf({ starts }: Tables, rate: string, now: number): Start[] {
  return (starts.get(rate) ?? []).filter(({ until }) => until > now);
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
  return [...rates].flatMap((rate) => (rate === null ? [] : startsOf(tables, rate, now).map(({ until }) => until)));
}
