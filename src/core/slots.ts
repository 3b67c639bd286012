// Slots
// The nominal times of a schedule. Slots are strictly increasing; each is an instant, whatever the clocks of a zone do.
//
//   SL1. An interval counts real time from its anchor: a change of the clocks does not touch it.
//   SL2. A cron expression with one fixed time of day has at most one slot a day: a time that the clocks skip comes at the first moment behind the
//        gap, a time that they show twice comes the first time.
//   SL3. Every other cron expression follows the clock on the wall: times that are skipped do not come, times that are shown twice come twice.
import { Cron } from "croner";
import { PawlError } from "../base/errors.ts";
import { LIMITS } from "./limits.ts";

/** When the slots of a schedule are; `anchor: null` counts from when the schedule was made. */
export type Timing =
  | { readonly cron: string; readonly zone: string }
  | { readonly everyMs: number; readonly anchor: number | null };

/** Timing whose slots can be computed: an interval knows what it counts from. */
export type Rhythm =
  | { readonly cron: string; readonly zone: string }
  | { readonly everyMs: number; readonly anchor: number };

export interface DueSlots {
  /** The newest that are due, oldest first. */
  readonly slots: readonly number[];
  /** There were more before them. */
  readonly hasOlder: boolean;
  /** The first that is not due yet; `null`: there will be none. */
  readonly next: number | null;
}

/** The first slot after a moment; `null` if there is none. */
export function nextSlot(rhythm: Rhythm, after: number): number | null {
  return slotsOf(rhythm)(after);
}

/** Gives the first slot after any moment: for many questions about one schedule. */
export function slotsOf(rhythm: Rhythm): (after: number) => number | null {
  if ("everyMs" in rhythm) {
    const { everyMs, anchor } = rhythm;
    return (after) => anchor + (Math.floor((after - anchor) / everyMs) + 1) * everyMs;
  }
  const cron = new Cron(rhythm.cron, { timezone: rhythm.zone });
  return (after) => cron.nextRun(new Date(after))?.getTime() ?? null;
}

/** The slots from `first`, which is one by itself, to `until`; of more than `keep` the newest. */
export function dueSlots(rhythm: Rhythm, first: number | null, until: number, keep: number): DueSlots {
  if (first === null || first > until) return { slots: [], hasOlder: false, next: first };
  const after = slotsOf(rhythm);
  // A year of missed seconds is not walked through: looks further and further back until there are enough.
  for (let span = LIMITS.slotLookMs; until - span > first; span *= 2) {
    const found = walk(after, until - span, until, keep);
    if (found.slots.length >= keep) return { ...found, hasOlder: true };
  }
  return walk(after, first, until, keep, [first]);
}

function walk(
  after: (time: number) => number | null,
  from: number,
  until: number,
  keep: number,
  slots: number[] = [],
): DueSlots {
  let next = after(from);
  for (; next !== null && next <= until; next = after(next)) slots.push(next);
  return { slots: slots.slice(-keep), hasOlder: slots.length > keep, next };
}

/** Refuses an expression or a zone that has no slots, and says why. */
export function assertCron(cron: unknown, zone: unknown, now: number): asserts cron is string {
  if (typeof zone !== "string" || !isZone(zone))
    throw invalid("zone", zone, 'it is no time zone known here. Give a name such as "Europe/Berlin" or "UTC"');
  if (typeof cron !== "string") throw invalid("cron", cron, `it is no text. ${CRON_HINT}`);
  if (cron.includes(":"))
    throw invalid("cron", cron, `a single moment is no schedule: use start with \`delay\`. ${CRON_HINT}`);
  let next: number | null;
  try {
    next = nextSlot({ cron, zone }, now);
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^\w+: /, "") : String(error);
    throw invalid("cron", cron, `${why.replace(/\.$/, "")}. ${CRON_HINT}`);
  }
  if (next === null) throw invalid("cron", cron, `no time from now on fits it. ${CRON_HINT}`);
}

const CRON_HINT =
  'Give five fields (minute hour day month weekday) such as "0 2 * * *", six with seconds in front, or a word such as "@daily"';

function isZone(zone: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }) !== null;
  } catch {
    return false;
  }
}

function invalid(field: string, value: unknown, why: string): PawlError {
  const shown = typeof value === "string" ? JSON.stringify(value.slice(0, 100)) : String(value);
  return new PawlError("invalid_argument", `\`${field}\` of the schedule is ${shown}: ${why}.`, {
    fields: { field, value: shown },
  });
}
