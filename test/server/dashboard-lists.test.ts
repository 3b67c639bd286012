// What the dashboard decides by itself about what it shows; what it looks like is in test/browser.
import { describe, expect, it } from "vitest";
import { UNKNOWN_EFFECT_CHOICES, UNKNOWN_OUTCOME_CHOICES } from "../../src/core/recovery.ts";
import { VERSION_CHOICES } from "../../src/core/version-mismatch.ts";
import { relative } from "../../web/src/format.ts";
import { merged } from "../../web/src/pages/runs-merge.ts";
import { CHOICES } from "../../web/src/run/choices.ts";
import type { WireSummary } from "../../web/src/wire.ts";

function run(id: string, second: number, more: Partial<WireSummary> = {}): WireSummary {
  const createdAt = new Date(second * 1000).toISOString();
  return { id, status: "running", state: "running", createdAt, ...more } as WireSummary;
}

type Filter = Parameters<typeof merged>[2];
const ALL: Filter = { status: null, state: null, owner: null };

/** What is shown after these have changed, by their ids. */
function shownAfter(shown: readonly WireSummary[], changed: readonly WireSummary[], filter = ALL, cursor?: string) {
  return merged({ runs: shown, cursor: cursor ?? null }, changed, filter).runs.map(({ id }) => id);
}

describe("a list that stays up to date", () => {
  it("X-31 stays newest first, whatever the ids are", () => {
    // Ids of children are digests: they say nothing about time.
    const shown = [run("b", 3), run("z-child", 2), run("a", 1)];
    expect(shownAfter(shown, [run("c", 4)])).toEqual(["c", "b", "z-child", "a"]);
    expect(shownAfter(shown, [run("z-child", 2, { state: "waiting" })])).toEqual(["b", "z-child", "a"]);
  });

  it("X-31 keeps the order of what began in the same moment", () => {
    expect(shownAfter([run("y", 1), run("x", 1)], [run("w", 1)])).toEqual(["w", "y", "x"]);
  });

  const FAILED = { ...ALL, status: "failed" };
  const failed = (id: string, second: number) => run(id, second, { status: "failed" });

  it("X-31 drops what no longer fits, and takes in what has begun to fit, however old it is", () => {
    expect(shownAfter([failed("b", 3), failed("a", 2)], [run("b", 3), failed("old", 1)], FAILED)).toEqual(["a", "old"]);
  });

  it("X-31 takes in nothing that belongs to a later page", () => {
    expect(shownAfter([failed("b", 3), failed("a", 2)], [failed("old", 1)], FAILED, "a")).toEqual(["b", "a"]);
  });
});

describe("times for people", () => {
  const now = Date.parse("2026-05-01T12:00:00Z");

  it("X-31 what is left is not made shorter by a day", () => {
    expect(relative(now + 2 * 86_400_000 - 180_000, now)).toBe("in 1d 23h");
    expect(relative(now + 3_600_000, now)).toBe("in 1h");
  });

  it("X-31 one unit is enough for the past", () => {
    expect(relative(now - 2 * 86_400_000 + 180_000, now)).toBe("1d ago");
    expect(relative(now - 500, now)).toBe("now");
  });
});

describe("choices of parked runs", () => {
  it("X-31 whoever decides is told what follows, whatever the engine lets them choose", () => {
    const others = ["retry", "skip", "raise"];
    for (const choice of [...UNKNOWN_OUTCOME_CHOICES, ...UNKNOWN_EFFECT_CHOICES, ...VERSION_CHOICES, ...others])
      expect(CHOICES[choice]?.says, choice).toBeTruthy();
  });
});
