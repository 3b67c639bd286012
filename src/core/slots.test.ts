import { describe, expect, it } from "vitest";
import { errorOf, ZONES } from "../../test/zones.ts";
import { assertCron, dueSlots, nextSlot, slotsOf } from "./slots.ts";

const at = (text: string) => Date.parse(text);
const HOUR = 3_600_000;

function first(cron: string, zone: string, from: string, count: number): string[] {
  const after = slotsOf({ cron, zone });
  const found: string[] = [];
  for (let slot = after(at(from)); slot !== null && found.length < count; slot = after(slot))
    found.push(new Date(slot).toISOString());
  return found;
}

describe("slots", () => {
  it("X-22 an interval counts from its anchor, forwards and backwards", () => {
    const rhythm = { everyMs: HOUR, anchor: at("2026-01-01T00:30:00Z") };
    expect(nextSlot(rhythm, at("2026-01-01T00:30:00Z"))).toBe(at("2026-01-01T01:30:00Z"));
    expect(nextSlot(rhythm, at("2025-12-31T20:00:00Z"))).toBe(at("2025-12-31T20:30:00Z"));
    expect(nextSlot(rhythm, at("2026-01-01T00:29:59.999Z"))).toBe(at("2026-01-01T00:30:00Z"));
  });

  it("I13 B45 a fixed time that the clocks skip comes right behind the gap, and one that they show twice comes the first time", () => {
    expect(first("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2)).toEqual([
      "2026-03-29T01:00:00.000Z",
      "2026-03-30T00:30:00.000Z",
    ]);
    expect(first("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2)).toEqual([
      "2026-10-25T00:30:00.000Z",
      "2026-10-26T01:30:00.000Z",
    ]);
  });

  it("I13 B45 other expressions follow the clock on the wall: skipped times do not come, repeated ones come twice", () => {
    expect(first("*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 1)).toEqual(["2026-03-30T00:00:00.000Z"]);
    expect(first("*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 4)).toEqual([
      "2026-10-25T00:00:00.000Z",
      "2026-10-25T00:30:00.000Z",
      "2026-10-25T01:00:00.000Z",
      "2026-10-25T01:30:00.000Z",
    ]);
  });

  it("B46 of a year of missed seconds the newest are found without a walk through all of them", () => {
    const rhythm = { cron: "* * * * * *", zone: "UTC" };
    const until = at("2026-06-01T00:00:00.500Z");
    const due = dueSlots(rhythm, at("2025-06-01T00:00:00Z"), until, 3);
    expect(due).toEqual({ slots: [until - 2500, until - 1500, until - 500], hasOlder: true, next: until + 500 });
  });

  it("B46 what is due is all of it, from the slot that was recorded on", () => {
    const rhythm = { cron: "0 * * * *", zone: "UTC" };
    const from = at("2026-06-01T00:00:00Z");
    expect(dueSlots(rhythm, from, from + 3 * HOUR, 10)).toEqual({
      slots: [0, 1, 2, 3].map((n) => from + n * HOUR),
      hasOlder: false,
      next: from + 4 * HOUR,
    });
    // A slot that another calendar has recorded comes all the same.
    expect(dueSlots(rhythm, from + 60_000, from + HOUR, 10).slots).toEqual([from + 60_000, from + HOUR]);
    expect(dueSlots(rhythm, from, from - 1, 10)).toEqual({ slots: [], hasOlder: false, next: from });
  });

  it.each([
    ["* * *", "UTC", /`cron` of the schedule is "\* \* \*": .*five/],
    ["61 * * * *", "UTC", /Invalid value for minute/],
    ["0 0 30 2 *", "UTC", /no time from now on/],
    ["2030-01-23T00:00:00", "UTC", /single moment/],
    ["* * * * *", "Mars/Olympus", /`zone` of the schedule is "Mars\/Olympus".*Europe\/Berlin/],
  ])("X-22 refuses %s in %s and says why", (cron, zone, message) => {
    expect(errorOf(() => assertCron(cron, zone, 0)).message).toMatch(message);
  });

  it("B45 the zones of the property test are twenty, and known here", () => {
    expect(new Set(ZONES).size).toBe(20);
    for (const zone of ZONES) expect(() => assertCron("0 0 * * *", zone, 0)).not.toThrow();
  });
});
