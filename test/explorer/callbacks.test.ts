import { workflow } from "pawl";
import { crashEverywhere, recorder } from "pawl/testing";
import { describe, expect, it } from "vitest";

/** What the outside has been given: it outlives every crash of the process. */
const given = new Set<string>();

const paying = (outside: ReturnType<typeof recorder>, timeout?: string) =>
  workflow("paying", async (ctx, cents: number) => {
    const reply = ctx.callback<{ paid: number } | null>("payment", {
      ...(timeout !== undefined && { timeout, default: null }),
    });
    await ctx.step("charge", ({ key }) => {
      given.add(reply.token);
      outside.record("charge", { cents }, key);
    });
    const paid = await reply.value();
    if (paid !== null) await ctx.step("ship", ({ key }) => outside.record("ship", paid, key));
    return paid;
  });

describe("a run that waits for an outside system, crashed at every point", () => {
  it("B48 S4-16 hands out one token whatever happens, takes its answer once, and ships once and only after it", async () => {
    given.clear();
    const outside = recorder();
    const report = await crashEverywhere(paying(outside), 4200, {
      recorder: outside,
      pairs: true,
      script: async (_run, engine) => {
        await engine.until(() => outside.effects.some(({ name }) => name === "charge"));
        const [token = ""] = given;
        // As a system does that got no reply the first time.
        await engine.callbacks.answer(token, { paid: 4200 });
        await engine.callbacks.answer(token, { paid: 4200 });
      },
    });
    expect(report.ok, report.toString()).toBe(true);
    expect(report.points.length).toBeGreaterThan(8);
    expect(report.outcome).toMatch(/^succeeded/);
    expect(given.size).toBe(1);
  });

  it("B50 goes on by itself when nobody has answered in time, and never ships", async () => {
    const outside = recorder();
    const report = await crashEverywhere(paying(outside, "2d"), 4200, { recorder: outside });
    expect(report.ok, report.toString()).toBe(true);
    expect(outside.effects.map(({ name }) => name)).not.toContain("ship");
  });
});
