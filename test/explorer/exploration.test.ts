// How an exploration goes about it: what it counts, leaves out, repeats and refuses.
import { type Context, workflow } from "pawl";
import { crashEverywhere, recorder } from "pawl/testing";
import { expect, it } from "vitest";
import { Choices } from "../../src/testing/explorer/choices.ts";
import { History } from "../../src/testing/explorer/history.ts";
import { nextRound, Stillness } from "../../src/testing/explorer/stillness.ts";
import { World } from "../../src/testing/explorer/world.ts";

const outside = recorder();
const twoSteps = workflow("two", async (ctx: Context) => {
  await ctx.step("one", ({ key }) => outside.record("one", undefined, key));
  return ctx.step("two", ({ key }) => outside.record("two", undefined, key));
});

it("S4-16 points are around every commit and every step's function, in order and in words", async () => {
  const { points, explored, skipped, isComplete, seed } = await crashEverywhere(twoSteps, undefined);
  expect(points.map(({ n, label }) => `${n} ${label}`)).toEqual([
    "1 before commit 1 (run started)",
    "2 after commit 1 (run started)",
    '3 before commit 2 (step "one" started)',
    '4 after commit 2 (step "one" started)',
    '5 start of step "one"',
    '6 end of step "one"',
    '7 before commit 3 (step "one" completed, step "two" started)',
    '8 after commit 3 (step "one" completed, step "two" started)',
    '9 start of step "two"',
    '10 end of step "two"',
    '11 before commit 4 (step "two" completed, run succeeded)',
    '12 after commit 4 (step "two" completed, run succeeded)',
  ]);
  // A kill finds the same before a commit and after the one before it, unless a step's function ran in between. Nobody can take over
  // between the start and the end of a function that does not wait for anything.
  expect({ explored, skipped, isComplete, seed }).toEqual({ explored: 22, skipped: 10, isComplete: true, seed: 1 });
});

it("S4-16 a step that waits can be taken over from while it does, so its start is a point of its own", async () => {
  const waiting = workflow("two", async (ctx: Context) => {
    await ctx.step("one", async ({ key }) => outside.record("one", undefined, key));
    return ctx.step("two", async ({ key }) => outside.record("two", undefined, key));
  });
  const { explored, skipped } = await crashEverywhere(waiting, undefined, { recorder: outside });
  expect({ explored, skipped }).toEqual({ explored: 24, skipped: 10 });
});

it("S4-16 one point alone, in one mode alone", async () => {
  const one = await crashEverywhere(twoSteps, undefined, { at: 6, modes: ["kill"], recorder: outside });
  expect([one.explored, one.repeats.map(({ step }) => step)]).toEqual([1, ["one"]]);
  const none = await crashEverywhere(twoSteps, undefined, { at: 6, modes: ["lost-answer"] });
  expect(none.explored).toBe(0);
});

it("S4-16 two crashes in one history: all pairs of a short workflow", async () => {
  const report = await crashEverywhere(twoSteps, undefined, { pairs: true, modes: ["kill"], recorder: outside });
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.isComplete).toBe(true);
  expect(report.explored).toBeGreaterThan(12 * 10);
  expect(Math.max(...report.repeats.map(({ times }) => times))).toBe(3);
});

it("S4-16 two crashes in one history: pairs of a longer one are sampled, and the seed says which", async () => {
  const steps = workflow("steps", async (ctx: Context) => {
    for (let i = 0; i < 3; i++) await ctx.step("turn", ({ key }) => outside.record("turn", { i }, key));
    await ctx.sleep("1 h");
    return ctx.step("end", () => "end");
  });
  const report = await crashEverywhere(steps, undefined, { pairs: true, seed: 7, recorder: outside });
  expect(report.toString()).toMatch(/^ok: .*left out \(seed 7\)/);
  expect(report.isComplete).toBe(false);
}, 120_000);

it("I5 what a failing history says names both points", async () => {
  const charged = recorder();
  const twice = workflow("twice", async (ctx: Context) => {
    await ctx.step("a", () => 1);
    // Guarded against one crash, not against two.
    await ctx.step(
      "charge",
      ({ attempt }) => void charged.record("charge", undefined, attempt < 3 ? "key" : undefined),
    );
  });
  const report = await crashEverywhere(twice, undefined, { pairs: true, modes: ["kill"], recorder: charged });
  expect(report.failures.length).toBeGreaterThan(0);
  expect(report.failures.every(({ second }) => second !== undefined)).toBe(true);
  expect(report.toString()).toMatch(/kill at point \d+, .*, then at point \d+, .*step "charge"/);
});

it("S4-16 a budget ends an exploration early, and the report says so", async () => {
  const report = await crashEverywhere(twoSteps, undefined, { budgetMs: 0 });
  expect(report).toMatchObject({ explored: 0, isComplete: false, left: 22, ok: true });
});

it("I10 a run that waits for what never comes is told apart from one that sleeps", async () => {
  const waiting = workflow({ name: "waiting", deadline: "2 days" }, async (ctx: Context) => ctx.waitFor("never"));
  const report = await crashEverywhere(waiting, undefined, { modes: ["kill"] });
  expect(report.outcome).toMatch(/^failed with .*deadline/);
});

it("I10 a run that waits for a signal that nobody sends is told so at once, with the signal", async () => {
  const waiting = workflow("waiting", async (ctx: Context) => ctx.waitFor("approval"));
  const report = await crashEverywhere(waiting, undefined);
  expect(report).toMatchObject({ ok: false, explored: 0, failures: [{ kind: "stuck", point: { n: 0 } }] });
  expect(report.failures[0]?.message).toMatch(/14 days, without any crash.*"approval", have the script .* send it/);
});

it("I10 a run that never ends is given up, and told so", async () => {
  const endless = workflow("endless", async (ctx: Context) => {
    for (;;) await ctx.step("more", () => 1);
  });
  const world = new World({
    workflows: [endless as never],
    stillness: new Stillness(),
    bodies: new WeakMap(),
    book: null,
    history: 0,
    inject: () => null,
    mostPoints: 100,
  });
  const history = new History(world, { workflow: endless as never, input: undefined, script: undefined });
  await expect(history.play()).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringMatching(/"endless" has come to \d+ points and not to its end\. Test it with an input/),
  });
  const { points } = world;
  await nextRound();
  await nextRound();
  expect(world.points).toBe(points);
});

it("S4-16 refuses a point that there is not, and says which there are", async () => {
  await expect(crashEverywhere(twoSteps, undefined, { at: 99 })).rejects.toMatchObject({
    code: "invalid_argument",
    message: "There is no point 99: `at` is one of 1 to 12.",
  });
});

it("S4-16 says that an undisturbed run failed: little was tried then", async () => {
  const failing = workflow("failing", async (ctx: Context, order: { id: string }) => ctx.step(order.id, () => 1));
  const report = await crashEverywhere(failing, undefined as never);
  expect(report.ok).toBe(true);
  expect(report.toString()).toMatch(/The undisturbed run failed.*look at its input/);
  expect((await crashEverywhere(twoSteps, undefined)).toString()).not.toMatch(/run failed/);
});

it("I5 names the clock that a body reads, though nothing differed because of it", async () => {
  const timed = workflow("timed", async (ctx: Context) => {
    if (Date.now() < 0) await ctx.step("never", () => 1);
    return ctx.step("work", () => 1);
  });
  const report = await crashEverywhere(timed, undefined);
  expect(report.ok).toBe(true);
  expect(report.hazards).toEqual([
    expect.stringMatching(/^Date\.now\(\) at .*exploration\.test\.ts:\d+:\d+ \(use ctx/),
  ]);
  expect(report.toString()).toMatch(/The body reads Date\.now\(\) at .*Nothing differed because of it here/);
  const silenced = workflow({ name: "timed", guard: "off" }, timed.definition.handler);
  expect((await crashEverywhere(silenced, undefined)).hazards).toEqual([]);
});

it("I10 what never comes to rest in the process, as somebody's timers and immediates, is waited for once and not at every moment", async () => {
  const outside = recorder();
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  const spin = () => void (isOver || setImmediate(spin));
  spin();
  const sequence = workflow("sequence", async (ctx: Context) => {
    await ctx.step("one", ({ key }) => {
      timer ??= setTimeout(() => {}, 3_600_000);
      outside.record("one", {}, key);
    });
    await ctx.sleep("1 day");
    await ctx.step("two", ({ key }) => outside.record("two", {}, key));
  });
  const report = await crashEverywhere(sequence, undefined, { recorder: outside, modes: ["kill"] });
  isOver = true;
  clearTimeout(timer);
  expect(report.toString()).toMatch(/^ok: /);
});

it("I5 the process is as it was before: clock, dice and the handling of rejections", async () => {
  const { Date: date } = globalThis;
  const { now } = Date;
  const { random } = Math;
  const { emit } = process;
  await crashEverywhere(twoSteps, undefined, { modes: ["kill"] });
  expect([globalThis.Date === date, Date.now === now, Math.random === random, process.emit === emit]).toEqual([
    true,
    true,
    true,
    true,
  ]);
});

it.each([{ modes: ["kil"] }, { modes: [] }, { modes: "kill" }, { budgetMs: "5s" }])(
  "refuses what would have nothing tried: %j",
  async (options) => {
    const [name = ""] = Object.keys(options);
    const asked = crashEverywhere(twoSteps, undefined, options as never);
    await expect(asked).rejects.toMatchObject({ code: "invalid_argument", message: expect.stringContaining(name) });
  },
);

it("refuses what is no workflow, as an import that is not there", async () => {
  const asked = crashEverywhere(undefined as never, undefined);
  await expect(asked).rejects.toThrow(
    "crashEverywhere needs a workflow, as made by workflow(name, body); this is undefined.",
  );
});

it("refuses a recorder that it cannot put back", async () => {
  const own = { record() {}, effects: [], requests: [], clear() {} };
  await expect(crashEverywhere(twoSteps, undefined, { recorder: own })).rejects.toMatchObject({
    code: "invalid_argument",
  });
});

it("refuses a recorder that another exploration is at", async () => {
  const first = crashEverywhere(twoSteps, undefined, { recorder: outside });
  await expect(crashEverywhere(twoSteps, undefined, { recorder: outside })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("give each a recorder of its own"),
  });
  expect((await first).toString()).toMatch(/^ok: /);
  expect((await crashEverywhere(twoSteps, undefined, { recorder: outside })).ok).toBe(true);
});

it("choices walk every way once, whatever their number", () => {
  const choices = new Choices();
  const ways: string[] = [];
  while (choices.next()) {
    const first = choices.pick(2);
    ways.push(first === 0 ? `0${choices.pick(3)}` : "1");
  }
  expect(ways).toEqual(["00", "01", "02", "1"]);
});
