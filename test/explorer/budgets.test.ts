// Budgets at every point at which a process can die. The limits leave no room for anything that is counted twice, and what is asked for at the end
// would fit if anything were forgotten: either would give another result.
import { type Context, hasCode, workflow } from "pawl";
import { crashEverywhere, recorder } from "pawl/testing";
import { expect, it } from "vitest";
import { encode } from "../../src/base/codec.ts";

const cents = (usd: number) => ({ spend: { usd } });

async function isRefused(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return false;
  } catch (error) {
    if (hasCode(error, "budget_exceeded")) return true;
    throw error;
  }
}

it("X-13 I26 I6 a tree of runs that uses its budget up to the last cent does so at every crash", async () => {
  const outside = recorder();
  const child = workflow("child", async (ctx: Context, n: number) => {
    await ctx.step("pay", ({ key }) => outside.record("pay", { n }, key), cents(0.2));
    return ctx.step("tell", ({ spent }) => spent({ usd: 0.1 }), cents(0.2));
  });
  const parent = workflow(
    { name: "parent", budget: { usd: 1.3, calls: 8, onExceeded: "fail" } },
    async (ctx: Context) => {
      await ctx.step("first", ({ key }) => outside.record("first", {}, key), cents(0.3));
      await ctx.map([1, 2], (n) => ctx.call(child, n));
      const both = [ctx.step("a", () => 1, cents(0.1)), ctx.step("b", ({ spent }) => spent({ usd: 0.2 }), cents(0.1))];
      await Promise.all(both);
      const refused = await isRefused(ctx.step("too much", () => 0, cents(0.2)));
      await ctx.step("last", () => 0, cents(0.1));
      return { refused, over: await isRefused(ctx.step("over", () => 0, cents(0))) };
    },
  );
  const report = await crashEverywhere(parent, undefined, { workflows: [child], recorder: outside });
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.explored).toBeGreaterThan(40);
});

it("X-13 E-9 I16 a run that is parked for its budget goes on once after it was raised, at every crash", async () => {
  const outside = recorder();
  const flow = workflow({ name: "flow", budget: { usd: 0.5 } }, async (ctx: Context) => {
    await ctx.step("first", ({ key }) => outside.record("first", {}, key), cents(0.4));
    await ctx.step("second", ({ key }) => outside.record("second", {}, key), cents(0.4));
    return "paid";
  });
  const report = await crashEverywhere(flow, undefined, {
    recorder: outside,
    script: async (run, engine) => {
      await engine.until(async () => (await run.status()).state !== "running");
      const [wait] = await engine.store.waits({ run: run.id, kind: "decision" });
      if (wait === undefined) return;
      const data = encode({ choice: "raise", value: { usd: 0.8 } });
      await engine.store.deliver({ to: run.id, id: "raised", kind: "decision", name: "#budget", data });
    },
  });
  expect(report.toString()).toMatch(/^ok: /);
});
