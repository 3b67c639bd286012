import { describe, expect, it } from "vitest";
import { LIMITS } from "./limits.ts";
import { changed, newSchedule, type Schedule, type ScheduleDefinition, settle, wakeOf } from "./schedule.ts";

const SECOND = 1000;
const HOUR = 3_600_000;
const BEGIN = Date.UTC(2026, 0, 1);

function scheduled(parts: Partial<ScheduleDefinition> = {}): Schedule {
  const definition: ScheduleDefinition = {
    workflow: "job",
    version: null,
    deadlineMs: HOUR,
    timing: { everyMs: SECOND, anchor: null },
    input: null,
    overlap: "allow",
    misfire: "fireOnce",
    tags: [],
    priority: 0,
    ...parts,
  };
  return newSchedule(definition, BEGIN);
}

describe("a schedule", () => {
  it("B46 catchUp makes up for the newest thousand slots and knows that there were more", () => {
    const now = BEGIN + HOUR;
    const { starts, hasOlder, cursor } = settle(scheduled({ misfire: "catchUp" }), now, now, false);
    expect(starts).toEqual(Array.from({ length: LIMITS.catchUpSlots }, (_, n) => now - (999 - n) * SECOND));
    expect([hasOlder, cursor.next, cursor.settled]).toEqual([true, now + SECOND, now]);
  });

  it("C-26 no more than a thousand slots wait in the queue; those that find it full are skipped, and counted", () => {
    const schedule = scheduled({ misfire: "catchUp", overlap: "queue" });
    const first = settle(schedule, BEGIN + 600 * SECOND, BEGIN, false);
    expect([first.starts, first.cursor.queue.length]).toEqual([[BEGIN + SECOND], 599]);
    const later = BEGIN + 1100 * SECOND;
    const second = settle({ ...schedule, cursor: first.cursor }, later, later, true);
    expect([second.starts.length, second.cursor.queue.length]).toEqual([0, LIMITS.queuedSlots]);
    expect(second.skips.map(({ why }) => why)).toEqual(Array.from({ length: 99 }, () => "limit"));
    expect([second.cursor.skipped, second.cursor.lastSkipped]).toEqual([99, { slot: later, why: "limit" }]);
  });

  it("C-26 of several slots at once, skip starts the first, cancel the last and queue one after the other", () => {
    const until = BEGIN + 3 * SECOND;
    const started = (overlap: ScheduleDefinition["overlap"], isBusy: boolean) =>
      settle(scheduled({ misfire: "catchUp", overlap }), until, until, isBusy).starts.map((slot) => slot - BEGIN);
    expect([started("skip", false), started("skip", true)]).toEqual([[SECOND], []]);
    expect([started("cancel", false), started("cancel", true)]).toEqual([[3 * SECOND], [3 * SECOND]]);
    expect([started("queue", false), started("queue", true)]).toEqual([[SECOND], []]);
    expect(started("allow", true)).toEqual([SECOND, 2 * SECOND, 3 * SECOND]);
  });

  it("C-26 wakes for its next slot, sooner while something waits, and never while it is paused", () => {
    const { cursor, definition } = scheduled({ timing: { everyMs: HOUR, anchor: null } });
    expect(wakeOf(cursor, BEGIN)).toBe(BEGIN + HOUR);
    expect(wakeOf({ ...cursor, queue: [BEGIN] }, BEGIN)).toBe(BEGIN + LIMITS.queueLookMs);
    const paused = changed({ definition, cursor }, { kind: "pause", at: BEGIN });
    expect(wakeOf(paused.cursor, BEGIN)).toBe(null);
    expect(settle(paused, BEGIN + 9 * HOUR, BEGIN + 9 * HOUR, false).starts).toEqual([]);
    expect(changed(paused, { kind: "resume", at: BEGIN + 9 * HOUR }).cursor.next).toBe(BEGIN + 10 * HOUR);
  });

  it("I13 a slot is settled once: a change that was asked for earlier does not bring it back", () => {
    const schedule = scheduled({ timing: { everyMs: HOUR, anchor: BEGIN } });
    const now = BEGIN + 2 * HOUR;
    const { cursor } = settle(schedule, now, now, false);
    const definition = { ...schedule.definition, timing: { everyMs: HOUR / 2, anchor: BEGIN } };
    const late = changed({ ...schedule, cursor }, { kind: "define", at: BEGIN + HOUR, definition });
    expect(late.cursor.next).toBe(now + HOUR / 2);
  });
});
