import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatMs, toMs } from "./duration.ts";

const DAY = 86_400_000;

describe("toMs", () => {
  it.each([
    [0, 0],
    [1, 1],
    [1.4, 1],
    [2 ** 31 - 1, 2 ** 31 - 1],
    [2 ** 31, 2 ** 31],
    [400 * 365 * DAY, 400 * 365 * DAY],
    ["0s", 0],
    ["1ms", 1],
    ["250 milliseconds", 250],
    ["90s", 90_000],
    ["1 second", 1000],
    ["5 mins", 300_000],
    ["1h 30m", 5_400_000],
    ["1h30m", 5_400_000],
    ["1 hour 30 minutes 5 seconds", 5_405_000],
    ["1.5h", 5_400_000],
    ["0.1s", 100],
    ["3 days", 3 * DAY],
    ["2 weeks", 14 * DAY],
    ["2w 1d", 15 * DAY],
    [" 3 Days ", 3 * DAY],
    ["146000 days", 146_000 * DAY],
  ])("reads %j", (duration, ms) => {
    expect(toMs(duration)).toBe(ms);
  });

  it.each([
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e15,
    "",
    " ",
    "5",
    "1.5",
    "s",
    "5x",
    "-5s",
    "5 s!",
    "5s 5s",
    "30m 1h",
    "1h, 30m",
    "1e3s",
    ".5s",
    "5..5s",
    "five days",
    "99999999 days",
    "9".repeat(400),
    `${"9".repeat(400)}s`,
    null,
    undefined,
    {},
    true,
  ])("refuses %j, naming it and saying what to write", (duration) => {
    expect(() => toMs(duration as string, "timeout")).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringMatching(
          /^timeout: .+ is not a duration Pawl accepts: .+\. Write for example .*"3 days"/,
        ),
      }),
    );
  });

  it("names the value", () => {
    expect(() => toMs("5 fortnights")).toThrow('duration: "5 fortnights" is not');
    expect(() => toMs("5 fortnights")).toThrow('unknown unit, "fortnights"');
  });

  it("refuses months and years, whose length depends on the date", () => {
    for (const duration of ["1 month", "2 months", "1mo", "5M", "1 year", "3y", "1 Year 2 days"]) {
      expect(() => toMs(duration)).toThrow(/months and years differ in length\. Give days, or wait until a date/);
    }
  });

  it("reads an attack in no time", () => {
    expect(() => toMs("1 ".repeat(500_000))).toThrow(/is not a duration/);
    expect(() => toMs(`1${"s".repeat(1_000_000)}`)).toThrow(/unknown unit/);
  });
});

describe("formatMs", () => {
  it.each([
    [0, "0 ms"],
    [0.3, "0 ms"],
    [350, "350 ms"],
    [999.4, "999 ms"],
    [999.6, "1 s"],
    [1000, "1 s"],
    [1240, "1.2 s"],
    [59_940, "59.9 s"],
    [59_950, "1m 00s"],
    [123_000, "2m 03s"],
    [3_599_499, "59m 59s"],
    [3_599_500, "1h 00m"],
    [3_900_000, "1h 05m"],
    [DAY - 30_000, "1 d"],
    [3 * DAY + 4 * 3_600_000, "3 d 4 h"],
    [14 * DAY, "14 d"],
    [-1200, "-1.2 s"],
  ])("shows %d as %s", (ms, text) => {
    expect(formatMs(ms)).toBe(text);
  });

  it("is off by less than its last figure, and reads back", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1000 * DAY }), (ms) => {
        const unit = ms < 1000 ? 1 : ms < 60_000 ? 100 : ms < 3_600_000 ? 1000 : ms < DAY ? 60_000 : 3_600_000;
        expect(Math.abs(toMs(formatMs(ms)) - ms)).toBeLessThanOrEqual(unit / 2);
      }),
    );
  });
});
