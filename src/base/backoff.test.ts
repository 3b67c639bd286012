import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Backoff, backoffMs, defaultBackoff } from "./backoff.ts";
import { seededRandom } from "./random.ts";

const steady: Backoff = { ...defaultBackoff, jitter: false };
const never = () => {
  throw new Error("no chance is taken");
};

describe("backoffMs", () => {
  it("S4-29 waits 1, 2, 4 s without jitter, never above 60 s", () => {
    const waits = Array.from({ length: 10 }, (_, i) => backoffMs(i + 1, steady, never));
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000]);
  });

  it("S4-32 spreads evenly between nothing and the longest wait, by default", () => {
    const { next } = seededRandom("jitter");
    const waits = Array.from({ length: 10_000 }, () => backoffMs(3, { baseMs: 1000, factor: 2, capMs: 60_000 }, next));
    expect(Math.min(...waits)).toBeLessThan(10);
    expect(Math.max(...waits)).toBeGreaterThan(3990);
    expect(Math.max(...waits)).toBeLessThanOrEqual(4000);
    const mean = waits.reduce((sum, wait) => sum + wait, 0) / waits.length;
    expect(mean).toBeGreaterThan(1950);
    expect(mean).toBeLessThan(2050);
  });

  it("S4-32 stays within bounds for any settings", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e9 }),
        fc.nat(),
        fc.double({ min: 1, max: 1e6, noNaN: true }),
        fc.nat(),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (attempt, baseMs, factor, capMs, chance) => {
          const longest = backoffMs(attempt, { baseMs, factor, capMs, jitter: false }, never);
          const wait = backoffMs(attempt, { baseMs, factor, capMs }, () => chance);
          expect(longest).toBeLessThanOrEqual(capMs);
          expect(wait).toBeGreaterThanOrEqual(0);
          expect(wait).toBeLessThanOrEqual(longest);
          expect(Number.isInteger(wait) && Number.isInteger(longest)).toBe(true);
        },
      ),
    );
  });

  it("refuses attempts that do not count from 1", () => {
    for (const attempt of [0, -1, 1.5, Number.NaN]) {
      expect(() => backoffMs(attempt, steady, never)).toThrow(/counts from 1/);
    }
  });
});
