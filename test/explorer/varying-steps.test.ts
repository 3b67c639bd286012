// Steps that return what the outside gives, something else each time. That is their right; what the body makes of it is still checked.
import { type Context, workflow } from "pawl";
import { type CrashReport, crashEverywhere, recorder } from "pawl/testing";
import { expect, it } from "vitest";

let ticks = 0;
/** A clock that no test can reset, and that never shows the same twice. */
const outsideTime = () => ++ticks;

function kindsOf({ failures }: CrashReport): string[] {
  return [...new Set(failures.map(({ kind }) => kind))].sort();
}

it("I5 S4-16 a step that returns the time passes at every point, and is named in a remark", async () => {
  const stamped = workflow("stamped", async (ctx: Context) => {
    const greeting = await ctx.step("greet", () => "Hello");
    await ctx.sleep("3s");
    return { greeting, at: await ctx.step("finish", outsideTime) };
  });
  const report = await crashEverywhere(stamped, undefined);
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.toString()).toMatch(
    /These steps vary without any crash: "finish"\. .*is not compared.*give them a fake/,
  );
  expect(report.varying).toEqual(["finish"]);
  expect(report.explored).toBeGreaterThan(20);
});

it("I5 a body that takes another way by what a step returned passes", async () => {
  const outside = recorder();
  const branching = workflow("branching", async (ctx: Context) => {
    const time = await ctx.step("now", outsideTime);
    const name = time % 2 === 0 ? "even" : "odd";
    await ctx.step(name, ({ key }) => outside.record(name, { time }, key));
    return ctx.step("end", ({ key }) => outside.record("end", { time }, key));
  });
  const report = await crashEverywhere(branching, undefined, { recorder: outside });
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.varying).toContain("now");
});

it("S4-16 a step that varied in no undisturbed run, as by a slow clock, is asked about once more before it is blamed", async () => {
  let calls = 0;
  // Both undisturbed runs see the same hour.
  const slow = workflow("slow", async (ctx: Context) => ctx.step("hour", () => Math.floor(calls++ / 4)));
  const report = await crashEverywhere(slow, undefined);
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.varying).toEqual(["hour"]);
});

it("I6 a charge that is made twice is caught beside a step that varies, whatever its details", async () => {
  const outside = recorder();
  const shop = workflow("shop", async (ctx: Context) => {
    const at = await ctx.step("now", outsideTime);
    await ctx.step("charge", () => outside.record("charge", { at }));
    return at;
  });
  const report = await crashEverywhere(shop, undefined, { recorder: outside });
  expect(kindsOf(report)).toEqual(["effects"]);
  expect(report.failures[0]).toMatchObject({ step: "charge" });
  expect(report.failures[0]?.message).toMatch(/"charge" happened 2 times instead of 1/);
});

it("I6 keys that a step has drawn and details that vary are no other effects", async () => {
  const outside = recorder();
  const shop = workflow("shop", async (ctx: Context) => {
    const id = await ctx.step("draw", () => `id-${outsideTime()}`);
    await ctx.step("charge", () => outside.record("charge", { id }, id));
    await ctx.step("log", ({ key }) => outside.record("log", { at: outsideTime() }, key));
  });
  const report = await crashEverywhere(shop, undefined, { recorder: outside });
  expect(report.toString()).toMatch(/^ok: /);
  const logging = workflow("logging", async (ctx: Context) => {
    await ctx.step("log", ({ key }) => outside.record("log", { at: outsideTime() }, key));
    return "done";
  });
  const logged = await crashEverywhere(logging, undefined, { recorder: outside });
  expect([logged.ok, logged.varying]).toEqual([true, ["log"]]);
});

it("I5 a body that keeps something between runs is caught beside a step that varies", async () => {
  let total = 0;
  const sum = workflow("sum", async (ctx: Context) => {
    await ctx.step("now", outsideTime);
    total += await ctx.step("two", () => 2);
    return total;
  });
  const report = await crashEverywhere(sum, undefined);
  expect(kindsOf(report)).toContain("replay");
  expect(report.toString()).toMatch(/replayed from its journal, it succeeded with/);
});

it("S4-16 a step that gives another result when it runs again is caught beside a step that varies", async () => {
  let calls = 0;
  const counting = workflow("counting", async (ctx: Context) => {
    const at = await ctx.step("now", outsideTime);
    return [at, await ctx.step("count", () => ++calls)];
  });
  const report = await crashEverywhere(counting, undefined, {
    fresh: () => {
      calls = 0;
    },
    observe: () => null,
  });
  expect(kindsOf(report)).toEqual(["result"]);
  expect(report.failures.every(({ step }) => step === "count")).toBe(true);
});

it("S4-16 a step that fails for good when it runs again is caught beside a step that varies", async () => {
  const seen = new Set<string>();
  const creating = workflow("creating", async (ctx: Context) => {
    const at = await ctx.step("now", outsideTime);
    await ctx.step(
      "create",
      ({ key }) => {
        if (seen.has(key)) throw new Error("It exists already.");
        seen.add(key);
      },
      { retry: false },
    );
    return at;
  });
  const report = await crashEverywhere(creating, undefined, { fresh: () => seen.clear(), observe: () => null });
  expect(kindsOf(report)).toEqual(["result"]);
  expect(report.failures[0]).toMatchObject({ step: "create" });
});

it("I5 says of a step that is handed something else each time that the body may have drawn it", async () => {
  const outside = recorder();
  const drawing = workflow("drawing", async (ctx: Context) => {
    const id = process.hrtime().join();
    await ctx.step("create", ({ key }) => outside.record("create", { id }, key));
  });
  const report = await crashEverywhere(drawing, undefined, { recorder: outside });
  expect(report.varying).toEqual(["create"]);
  expect(report.toString()).toMatch(/if the body hands them something that it has drawn .* draw it in a step/);
});
