// Every change of the clocks in 20 zones over 10 years, against an oracle that knows nothing of cron: offsets, and arithmetic on them.
import { describe, expect, it } from "vitest";
import { slotsOf } from "../src/core/slots.ts";
import { type ClockChange, clockChanges, offsetAt, ZONES } from "./zones.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const FROM = Date.UTC(2020, 0, 1);
const UNTIL = Date.UTC(2030, 0, 1);

type OffsetAt = (time: number) => number;

/** Offsets from the list of changes: asking the calendar for each moment would take longer than all the rest. */
function offsetsOf(zone: string, changes: readonly ClockChange[]): OffsetAt {
  const first = offsetAt(zone, FROM - DAY);
  return (time) => changes.findLast(({ at }) => at <= time)?.after ?? first;
}

/** The slots in a span, each checked to come after the one before. */
function walk(cron: string, zone: string, from: number, until: number): number[] {
  const after = slotsOf({ cron, zone });
  const found: number[] = [];
  for (let slot = after(from); slot !== null && slot <= until; slot = after(slot)) {
    if (slot <= (found.at(-1) ?? from))
      throw new Error(`${cron} in ${zone} goes back to ${new Date(slot).toISOString()}`);
    found.push(slot);
  }
  return found;
}

/** When the clocks show this time of this day: the first time, or right behind the gap that it falls into. */
function wallTime(zone: string, offset: OffsetAt, wall: number, changes: readonly ClockChange[]): number {
  const near = changes.filter(({ at }) => Math.abs(at - wall) < 2 * DAY);
  const offsets = [...new Set([offset(wall - DAY), ...near.flatMap(({ before, after }) => [before, after])])];
  const moments = offsets.map((one) => wall - one).filter((time) => time + offset(time) === wall);
  if (moments.length > 0) return Math.min(...moments);
  const gap = near.find(({ at, before, after }) => at + before <= wall && wall < at + after);
  if (gap === undefined) throw new Error(`no such time in ${zone}: ${new Date(wall).toISOString()}`);
  return gap.at;
}

describe.each(ZONES)("slots in %s from 2020 to 2030", (zone) => {
  const changes = clockChanges(zone, FROM - DAY, UNTIL + DAY);
  const offset = offsetsOf(zone, changes);

  it("I13 B45 a fixed time comes once on every day, at the first moment that fits", () => {
    // The hour in which most clocks change here; where they never do, any.
    const change = changes.find(({ before, after }) => after > before) ?? { at: FROM, before: 0 };
    const minutes = Math.floor((((change.at + change.before) % DAY) + 10 * MINUTE) / MINUTE) % 1440;
    const cron = `${minutes % 60} ${Math.floor(minutes / 60)} * * *`;
    // A leap year from end to end, and the week around every change: between two changes, a day is like the next.
    const weeks = changes.map(({ at }) => Math.floor(at / DAY) * DAY - 3 * DAY);
    for (const [from, days] of [[FROM, 366] as const, ...weeks.map((week) => [week, 7] as const)]) {
      const expected = Array.from({ length: days }, (_, n) =>
        wallTime(zone, offset, from + n * DAY + minutes * MINUTE, changes),
      );
      const found = walk(cron, zone, (expected[0] ?? 0) - 1, expected.at(-1) ?? 0);
      expect(found, new Date(from).toISOString()).toEqual(expected);
    }
  });

  it("I13 B45 an expression without a fixed time has every moment at which the clocks show it, around every change", () => {
    for (const { at } of changes) {
      const [from, until] = [at - 5 * HOUR, at + 5 * HOUR];
      const expected: number[] = [];
      for (let time = from + MINUTE; time <= until; time += MINUTE)
        if (Math.floor((time + offset(time)) / MINUTE) % 15 === 0) expected.push(time);
      expect(walk("*/15 * * * *", zone, from, until), new Date(at).toISOString()).toEqual(expected);
    }
  });
});

it("I13 X-22 an interval does not know of clocks: ten years of it are evenly spaced", () => {
  const after = slotsOf({ everyMs: 6 * HOUR, anchor: FROM + 1 });
  const found: number[] = [];
  for (let slot = after(FROM) ?? 0; slot < UNTIL; slot = after(slot) ?? UNTIL) found.push(slot);
  expect(found).toEqual(Array.from({ length: ((UNTIL - FROM) / DAY) * 4 }, (_, n) => FROM + 1 + n * 6 * HOUR));
});
