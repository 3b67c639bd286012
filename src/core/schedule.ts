// A schedule
// What a schedule does when its time has come: pure decisions over its definition and its cursor. Whoever owns the schedule's run makes them and
// writes them in one commit with the runs that they start.
//
//   SD1. Every slot is settled once and in order: it starts a run, waits in the queue, or is skipped for a reason that is counted.
//   SD2. What is recorded as the next slot comes, whatever another version of the calendar would say; only later ones are computed.
//   SD3. A change takes effect at the moment it was asked for: slots up to then belong to the old definition, later ones to the new one.
import { encode } from "../base/codec.ts";
import { LIMITS } from "./limits.ts";
import { dueSlots, nextSlot, type Rhythm, type Timing } from "./slots.ts";

/** What happens to a slot while the run of the one before still goes on. */
export type Overlap = "allow" | "skip" | "queue" | "cancel";
/** What happens to slots that came while nobody worked. */
export type Misfire = "fireOnce" | "skip" | "catchUp";

export interface ScheduleDefinition {
  readonly workflow: string;
  /** `null`: the newest that a worker has when the slot comes. */
  readonly version: string | null;
  readonly deadlineMs: number;
  readonly timing: Timing;
  readonly input: unknown;
  readonly overlap: Overlap;
  readonly misfire: Misfire;
  readonly tags: readonly string[];
  readonly priority: number;
}

export interface ScheduleCursor {
  /** What an interval counts from. */
  readonly anchor: number;
  /** Every slot up to this moment is settled. */
  readonly settled: number;
  readonly next: number | null;
  /** Slots that wait for the run before them. */
  readonly queue: readonly number[];
  readonly paused: boolean;
  readonly lastSlot: number | null;
  /** Slots that started nothing. */
  readonly skipped: number;
  readonly lastSkipped: Skip | null;
}

export interface Skip {
  readonly slot: number;
  /** The run before still went on; it came while nobody worked; or more waited than are kept. */
  readonly why: "overlap" | "misfire" | "limit";
}

export interface Schedule {
  readonly definition: ScheduleDefinition;
  readonly cursor: ScheduleCursor;
}

/** What a person has asked for, and when. */
export type ScheduleChange =
  | { readonly kind: "define"; readonly at: number; readonly definition: ScheduleDefinition }
  | { readonly kind: "pause" | "resume"; readonly at: number };

/** What is to happen besides the new cursor. */
export interface Settlement {
  readonly cursor: ScheduleCursor;
  readonly starts: readonly number[];
  /** The run of the slot before is to stop for the one that starts. */
  readonly cancels: boolean;
  readonly skips: readonly Skip[];
  /** Slots were missed that are too many to be named. */
  readonly hasOlder: boolean;
}

export function newSchedule(definition: ScheduleDefinition, at: number): Schedule {
  const { timing } = definition;
  const anchor = "everyMs" in timing ? (timing.anchor ?? at) : at;
  const cursor = { anchor, settled: at, next: nextSlot(rhythmOf(timing, anchor), at), queue: [], paused: false };
  return { definition, cursor: { ...cursor, lastSlot: null, skipped: 0, lastSkipped: null } };
}

/** The schedule after a change; what was due before must be settled already (SD3). */
export function changed(schedule: Schedule, change: ScheduleChange): Schedule {
  if (change.kind === "define") return redefined(schedule, change.definition, change.at);
  const { definition, cursor } = schedule;
  if (change.kind === "pause") return { definition, cursor: { ...cursor, paused: true } };
  if (!cursor.paused) return schedule;
  return { definition, cursor: { ...restarted(definition, cursor, change.at), paused: false } };
}

function redefined({ definition, cursor }: Schedule, next: ScheduleDefinition, at: number): Schedule {
  if (encode(definition.timing) === encode(next.timing)) return { definition: next, cursor };
  const anchor = "everyMs" in next.timing ? (next.timing.anchor ?? at) : at;
  return { definition: next, cursor: restarted(next, { ...cursor, anchor }, at) };
}

/** Goes on with the first slot after a moment: nothing is due that came before it. */
function restarted(definition: ScheduleDefinition, cursor: ScheduleCursor, at: number): ScheduleCursor {
  const settled = Math.max(cursor.settled, at);
  return { ...cursor, settled, next: nextSlot(rhythmOf(definition.timing, cursor.anchor), settled) };
}

/** Settles every slot up to `until`, as it is found at `now`. `isBusy`: the run of the last slot still goes on. */
export function settle({ definition, cursor }: Schedule, until: number, now: number, isBusy: boolean): Settlement {
  if (cursor.paused) return { cursor, starts: [], cancels: false, skips: [], hasOlder: false };
  const keep = definition.misfire === "catchUp" ? LIMITS.catchUpSlots : LIMITS.missedSlots;
  const due = dueSlots(rhythmOf(definition.timing, cursor.anchor), cursor.next, until, keep);
  const { wanted, missed } = byMisfire(definition.misfire, due.slots, now);
  const { starts, queue, passed } = byOverlap(definition.overlap, cursor.queue, wanted, isBusy);
  const skips = [...missed, ...passed];
  const last = starts.at(-1) ?? null;
  return {
    cursor: {
      ...cursor,
      settled: Math.max(cursor.settled, due.slots.at(-1) ?? cursor.settled),
      next: due.next,
      queue,
      lastSlot: last ?? cursor.lastSlot,
      skipped: cursor.skipped + skips.length,
      lastSkipped: skips.at(-1) ?? cursor.lastSkipped,
    },
    starts,
    cancels: definition.overlap === "cancel" && isBusy && starts.length > 0,
    skips,
    hasOlder: due.hasOlder,
  };
}

/** A slot is missed if a later one is due as well, or if it is found too late. */
function byMisfire(
  misfire: Misfire,
  slots: readonly number[],
  now: number,
): { wanted: readonly number[]; missed: Skip[] } {
  const last = slots.at(-1);
  if (misfire === "catchUp" || last === undefined) return { wanted: slots, missed: [] };
  const isLate = now - last > LIMITS.misfireMs;
  const wanted = misfire === "skip" && isLate ? [] : [last];
  return { wanted, missed: slots.slice(0, slots.length - wanted.length).map((slot) => ({ slot, why: "misfire" })) };
}

interface Overlapping {
  readonly starts: readonly number[];
  readonly queue: readonly number[];
  readonly passed: readonly Skip[];
}

function byOverlap(
  overlap: Overlap,
  queue: readonly number[],
  wanted: readonly number[],
  isBusy: boolean,
): Overlapping {
  const skipsOf = (slots: readonly number[], why: Skip["why"]): Skip[] => slots.map((slot) => ({ slot, why }));
  // What another definition has left in the queue comes first.
  const waiting = [...queue, ...wanted];
  if (overlap === "allow") return { starts: waiting, queue: [], passed: [] };
  if (overlap === "cancel")
    return { starts: waiting.slice(-1), queue: [], passed: skipsOf(waiting.slice(0, -1), "overlap") };
  const starts = isBusy ? [] : waiting.slice(0, 1);
  const rest = waiting.slice(starts.length);
  if (overlap === "skip") return { starts, queue: [], passed: skipsOf(rest, "overlap") };
  const kept = rest.slice(0, LIMITS.queuedSlots);
  return { starts, queue: kept, passed: skipsOf(rest.slice(kept.length), "limit") };
}

/** When the schedule must be looked at again; `null`: only when it is changed. */
export function wakeOf({ next, queue, paused }: ScheduleCursor, now: number): number | null {
  if (paused) return null;
  if (queue.length === 0) return next;
  return Math.min(next ?? Number.POSITIVE_INFINITY, now + LIMITS.queueLookMs);
}

function rhythmOf(timing: Timing, anchor: number): Rhythm {
  return "cron" in timing ? timing : { everyMs: timing.everyMs, anchor };
}
