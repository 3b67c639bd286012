// A step's function that does more than one thing may be cut off between two of them.
import { describe, expect, it } from "vitest";
import type { Context } from "../../src/core/context.ts";
import { workflow } from "../../src/core/workflow.ts";
import { crashEverywhere } from "../../src/testing/crash-everywhere.ts";
import { type Recorder, recorder } from "../../src/testing/recorder.ts";
import { nextRound } from "../behaviour/harness.ts";

/** Does what it is given, one after the other, unless the last thing that is looked for is there. */
function once(outside: Recorder, look: string, names: readonly string[], between: () => unknown = () => {}) {
  return workflow("pay", async (ctx: Context) =>
    ctx.step("charge", async () => {
      if (outside.effects.some(({ name }) => name === look)) return;
      for (const name of names) {
        outside.record(name);
        await between();
      }
    }),
  );
}

describe("S4-16 I6 a step's function", () => {
  it.each([
    ["without waiting", undefined],
    ["waiting in between", () => nextRound()],
  ])("that acts and then notes that it has, %s, is found to act twice", async (_, between) => {
    const outside = recorder();
    const report = await crashEverywhere(once(outside, "note", ["charge", "note"], between), undefined, {
      recorder: outside,
    });
    expect(report.failures.map(({ kind, mode, step, point }) => ({ kind, mode, step, point: point.label }))).toEqual([
      { kind: "effects", mode: "kill", step: "charge", point: 'effect "charge" in step "charge"' },
    ]);
    expect(report.failures[0]?.message).toContain('"charge" happened 2 times instead of 1');
  });

  it("that notes first and then acts is found not to act at all", async () => {
    const outside = recorder();
    const report = await crashEverywhere(once(outside, "note", ["note", "charge"]), undefined, { recorder: outside });
    expect(report.failures.map(({ point }) => point.label)).toEqual(['effect "note" in step "charge"']);
    expect(report.failures[0]?.message).toMatch(
      /"charge" happened 0 times instead of 1.*saves nothing that says it is/,
    );
  });

  it("that passes its key on to both is sound, and what it does last is tried with its end alone", async () => {
    const outside = recorder();
    const pay = workflow("pay", async (ctx: Context) =>
      ctx.step("charge", ({ key }) => {
        outside.record("charge", {}, key);
        outside.record("note", {}, key);
      }),
    );
    const report = await crashEverywhere(pay, undefined, { recorder: outside, modes: ["kill"] });
    expect(report.toString()).toMatch(/^ok: /);
    const inStep = report.points.filter(({ kind }) => kind === "effect");
    expect(inStep.map(({ label }) => label)).toEqual([
      'effect "charge" in step "charge"',
      'effect "note" in step "charge"',
    ]);
    const silent = workflow("pay", async (ctx: Context) => ctx.step("charge", ({ key }) => key));
    const { explored } = await crashEverywhere(silent, undefined, { recorder: outside, modes: ["kill"] });
    expect(report.explored).toBe(explored + 1);
    // Asked for alone, it is tried alone.
    for (const { n } of inStep)
      expect(await crashEverywhere(pay, undefined, { recorder: outside, at: n })).toMatchObject({
        ok: true,
        explored: 1,
      });
  });

  it("is not blamed for what a person answers who is asked about the half of it", async () => {
    const outside = recorder();
    const pay = workflow("pay", async (ctx: Context) => {
      const both = () => {
        outside.record("charge");
        outside.record("note");
      };
      await ctx.step("pay", both, { recovery: "ask" });
      return ctx.effect("ship", { do: both });
    });
    const report = await crashEverywhere(pay, undefined, { recorder: outside });
    expect(report.toString()).toMatch(/^ok: /);
    expect(report.points.filter(({ kind }) => kind === "effect")).toHaveLength(4);
  });

  it.each([
    ["step", (ctx: Context, act: () => Promise<void>) => ctx.step("ask", act, { recovery: "ask" })],
    ["effect", (ctx: Context, act: () => Promise<void>) => ctx.effect("ask", { do: act })],
  ])("is not blamed for such an answer where the crash came of another step: %s", async (_, ask) => {
    const outside = recorder();
    const act = async () => {
      outside.record("ship");
      for (let i = 0; i < 30; i++) await nextRound();
    };
    const pay = workflow("pay", async (ctx: Context) =>
      Promise.all([ask(ctx, act), ctx.step("pay", ({ key }) => outside.record("pay", {}, key))]),
    );
    const report = await crashEverywhere(pay, undefined, { recorder: outside });
    expect(report.toString()).toMatch(/^ok: /);
  });

  it("is blamed although a person is asked about another one", async () => {
    const outside = recorder();
    const charge = once(outside, "note", ["charge", "note"], nextRound).definition.handler;
    const wait = async () => {
      outside.record("ship");
      for (let i = 0; i < 30; i++) await nextRound();
    };
    const pay = workflow("pay", async (ctx: Context) =>
      Promise.all([ctx.step("ask", wait, { recovery: "ask" }), charge(ctx, undefined)]),
    );
    const report = await crashEverywhere(pay, undefined, { recorder: outside });
    expect(new Set(report.failures.map(({ step }) => step))).toEqual(new Set(["charge"]));
    expect(report.failures[0]?.message).toContain('"charge" happened 2 times instead of 1');
  });

  it("is not cut off in one process where the test has fakes of its own, which is told of a point that is asked for", async () => {
    const outside = recorder();
    const pay = once(outside, "note", ["charge", "note"]);
    const point = { at: 6, fresh: () => {}, recorder: outside };
    const report = await crashEverywhere(pay, undefined, point);
    expect(report).toMatchObject({ ok: true, explored: 0 });
    expect(report.points[5]?.kind).toBe("effect");
    expect(report.toString()).toMatch(
      /No crash was tried: .*`fresh` or `observe`, only of a real process, as `pawl test`/,
    );
    const { at: _, ...everywhere } = point;
    expect((await crashEverywhere(pay, undefined, everywhere)).toString()).not.toContain("No crash was tried");
  });

  it("is cut off while others of its run are under way", async () => {
    const outside = recorder();
    const isNoted = (who: string) => outside.effects.some(({ name }) => name === `note ${who}`);
    const pay = workflow("pay", async (ctx: Context) =>
      ctx.map(["a", "b"], (who) =>
        ctx.step("charge", async () => {
          if (isNoted(who)) return;
          outside.record(`charge ${who}`);
          await nextRound();
          outside.record(`note ${who}`);
        }),
      ),
    );
    const report = await crashEverywhere(pay, undefined, { recorder: outside, modes: ["kill"] });
    const blamed = report.failures.map(({ message }) => /The effect "(.*?)"/.exec(message)?.[1]);
    expect(new Set(blamed)).toEqual(new Set(["charge a", "charge b"]));
  });
});
