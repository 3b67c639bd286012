// Workflows that are right, in ways that could be taken for wrong: none of them may be blamed.
import { type Context, workflow } from "pawl";
import { crashEverywhere, recorder } from "pawl/testing";
import { expect, it } from "vitest";
import { nextRound } from "../../src/testing/explorer/stillness.ts";

it("I6 a compensation that an interrupted step leads to is what was asked for", async () => {
  const outside = recorder();
  const careful = workflow("careful", async (ctx: Context) => {
    try {
      await ctx.step("charge", () => outside.record("charge"), { recovery: "fail" });
      return "charged";
    } catch {
      await ctx.step("tell", ({ key }) => outside.record("tell", {}, key));
      return "told";
    }
  });
  const report = await crashEverywhere(careful, undefined, { recorder: outside });
  expect(report.toString()).toMatch(/^ok: /);
});

it("I6 a compensation that is made twice is caught, though nothing of it happens undisturbed", async () => {
  const outside = recorder();
  const careless = workflow("careless", async (ctx: Context) => {
    try {
      await ctx.step("charge", () => outside.record("charge"), { recovery: "fail" });
    } catch {
      await ctx.step("tell", () => outside.record("tell"));
    }
  });
  const report = await crashEverywhere(careless, undefined, { recorder: outside, pairs: true, modes: ["kill"] });
  expect(report.failures[0]).toMatchObject({ kind: "effects", step: "tell" });
  expect(report.failures[0]?.message).toMatch(/"tell" happened 2 times instead of 1 at most/);
});

it("I6 the loser of a race may have had its effect, or not", async () => {
  const outside = recorder();
  const race = workflow("race", async (ctx: Context) =>
    Promise.race([
      ctx.step("fast", ({ key }) => {
        outside.record("fast", {}, key);
        return "fast";
      }),
      ctx.step("slow", async ({ key, signal }) => {
        for (let round = 0; round < 10; round++) await nextRound();
        signal.throwIfAborted();
        outside.record("slow", {}, key);
        return "slow";
      }),
    ]),
  );
  const report = await crashEverywhere(race, undefined, { recorder: outside });
  expect(report.toString()).toMatch(/^ok: /);
});
