import { type Context, workflow } from "pawl";
import { manualClock, recorder, type TestEngine, testEngine } from "pawl/testing";
import { expect, it, onTestFinished } from "vitest";
import { hasPendingTimers, watchTimers } from "../../src/testing/explorer/step-timers.ts";

const DAY = 86_400_000;

const reminder = workflow("reminder", async (ctx: Context) => {
  await ctx.sleep("3 days");
  const answer = await ctx.waitFor<string, string>("answer", { timeout: "7 days", default: "none" });
  return { answer, at: ctx.now() };
});

async function open(...workflows: Parameters<typeof testEngine>[0]["workflows"]): Promise<TestEngine> {
  const engine = await testEngine({ workflows });
  onTestFinished(() => engine.close());
  return engine;
}

it("I13 a result that takes ten days is there at once, and its time is virtual", async () => {
  const engine = await open(reminder);
  const begun = engine.clock.now();
  const { answer, at } = await engine.run(reminder);
  expect([answer, at - begun]).toEqual(["none", 10 * DAY]);
});

it("I13 time stands still while nobody waits, and moves as far as it is told", async () => {
  const engine = await open(reminder);
  const run = await engine.start(reminder);
  await engine.settle();
  expect((await run.status()).waits).toMatchObject([{ kind: "timer" }]);
  await engine.advance("2 days");
  expect((await run.status()).waits).toMatchObject([{ kind: "timer" }]);
  await engine.advance("2 days");
  expect((await run.status()).waits).toMatchObject([{ kind: "signal", name: "answer" }]);
  expect(engine.clock.now() - Date.UTC(2026, 0, 1)).toBe(4 * DAY);
});

it("I14 a signal comes when the test says so", async () => {
  const engine = await open(reminder);
  const run = await engine.start(reminder);
  await engine.until(async () => (await run.status()).waits.some(({ kind }) => kind === "signal"));
  await run.signal("answer", "yes");
  expect(await run.result()).toMatchObject({ answer: "yes" });
});

it("I16 a cancel, and children at hand", async () => {
  const parent = workflow("parent", async (ctx: Context) => ctx.call(reminder));
  const engine = await open(parent, reminder);
  const run = await engine.start(parent);
  await engine.settle();
  const [child] = await engine.store.runs({ parent: run.id, limit: 10 });
  expect(await engine.get(child?.id ?? "").status()).toMatchObject({ workflow: "reminder", status: "waiting" });
  expect((await engine.cancel(run.id)).outcome).toMatch(/^cancell(ing|ed)$/);
  await expect(run.result()).rejects.toMatchObject({ code: "cancelled" });
});

it("I13 a step that takes real time is not timed out by virtual time", async () => {
  const slow = workflow("slow", async (ctx: Context) => {
    const outcome = await Promise.race([
      ctx.step("real", () => new Promise((resolve) => void setTimeout(() => resolve("real"), 5))),
      ctx.sleep("1 day").then(() => "too late"),
    ]);
    return outcome;
  });
  const engine = await open(slow);
  expect(await engine.run(slow)).toBe("real");
});

it("I13 a timer of somebody else that ends does not hide the one that a step has set meanwhile", async () => {
  const others = setTimeout(() => {}, 60_000);
  const work = () => {
    clearTimeout(others);
    return new Promise((resolve) => void setTimeout(() => resolve("real"), 50));
  };
  const slow = workflow("slow", (ctx: Context) => ctx.step("real", work, { timeout: "1s", retry: false }));
  const engine = await open(slow);
  expect(await engine.run(slow)).toBe("real");
});

it("knows a timer until it fires, is cleared or lets go, and leaves the functions as they were", async () => {
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const stops = [watchTimers(), watchTimers()];
  const timer = setTimeout(() => {}, 60_000);
  expect(hasPendingTimers()).toBe(true);
  timer.unref();
  expect(hasPendingTimers()).toBe(false);
  timer.ref();
  clearTimeout(timer);
  expect(hasPendingTimers()).toBe(false);
  const told: unknown = await new Promise((resolve) => void setTimeout(resolve, 0, "with its argument"));
  expect([told, hasPendingTimers()]).toEqual(["with its argument", false]);
  for (const stop of [...stops, ...stops]) stop();
  expect([globalThis.setTimeout, globalThis.clearTimeout]).toEqual([set, clear]);
});

it("I13 a step that hangs is timed out by virtual time at once", async () => {
  const hanging = workflow("hanging", async (ctx: Context) =>
    ctx.step("hang", () => new Promise(() => {}), { timeout: "1 h", retry: false }),
  );
  const engine = await open(hanging);
  await expect(engine.run(hanging)).rejects.toMatchObject({ code: "step_timeout" });
});

it("I13 whoever waits for a run that is parked for good is told why, and what may be decided", async () => {
  const hanging = workflow("hanging", async (ctx: Context) =>
    ctx.effect("ship", { do: () => new Promise<string>(() => {}) }, { timeout: "1s" }),
  );
  const engine = await open(hanging);
  const parked = {
    code: "run_parked",
    fields: { run: "a", reason: "unknown_outcome", choices: expect.arrayContaining(["happened", "abort"]) },
    message: expect.stringMatching(/Run a of "hanging" is parked \(unknown_outcome\).*engine\.resolve\("a", choice\)/),
  };
  await expect(engine.run(hanging, undefined, { id: "a" })).rejects.toMatchObject(parked);
  await expect(engine.get("a").result()).rejects.toMatchObject(parked);
  // Somebody who decides while another one waits is in time.
  const run = await engine.start(hanging, undefined, { id: "b" });
  const result = run.result();
  await engine.until(async () => (await run.status()).parked !== undefined);
  await engine.resolve("b", { choice: "happened", value: "shipped", step: "ship" });
  expect(await result).toBe("shipped");
});

it("refuses a workflow that it does not have: its run would wait for ever", async () => {
  const known = workflow("known", async () => 1);
  const other = workflow("other", async () => 2);
  const engine = await testEngine({ workflows: [known] });
  const refusal = {
    code: "unknown_workflow",
    message: expect.stringMatching(/"other" is not among .*workflows: \[other/),
  };
  await expect(engine.run(other)).rejects.toMatchObject(refusal);
  await expect(engine.start(other)).rejects.toMatchObject(refusal);
  expect(await engine.run(known)).toBe(1);
  await engine.close();
  await expect(testEngine({} as never)).rejects.toMatchObject({
    message: expect.stringContaining("needs `workflows`"),
  });
});

it("takes a clock of the test's own", async () => {
  const clock = manualClock(Date.UTC(2030, 5, 1));
  const engine = await testEngine({ workflows: [reminder], clock });
  await engine.run(reminder);
  expect(clock.now()).toBe(Date.UTC(2030, 5, 11));
  await engine.close();
});

it("I10 closing tells of a run that nothing would wake", async () => {
  const engine = await testEngine({ workflows: [reminder] });
  const run = await engine.start(reminder);
  await engine.settle();
  // As a store that lost the alarm of a sleeping run would have it.
  const { store } = engine;
  const { orphans } = store;
  Object.assign(store, { orphans: async () => [...(await orphans()), { run: run.id, state: "waiting", why: "lost" }] });
  await expect(engine.close()).rejects.toThrow(/1 runs were left with nothing that would ever wake them/);
});

it("I6 a recorder knows its keys, and where an effect came from", async () => {
  const outside = recorder();
  const body = workflow({ name: "body", guard: "off" }, async (ctx: Context) => {
    outside.record("in the body");
    await ctx.step("charge", ({ key }) => outside.record("charge", { cents: 1 }, key));
    await ctx.step("again", () => outside.record("charge", { cents: 1 }, `${ctx.run.id}/charge`));
  });
  const engine = await open(body);
  await engine.run(body, undefined, { id: "r" });
  outside.record("elsewhere");
  expect(outside.requests).toMatchObject([
    { name: "in the body", where: "body", run: "r", step: null, line: expect.stringContaining("test-engine.test.ts") },
    { name: "charge", where: "step", step: "charge", key: "r/charge", did: true },
    { name: "charge", where: "step", step: "again", key: "r/charge", did: false },
    { name: "elsewhere", where: "elsewhere", run: null },
  ]);
  expect(outside.effects.map(({ name }) => name)).toEqual(["in the body", "charge", "elsewhere"]);
  outside.clear();
  expect(outside.requests).toEqual([]);
  outside.record("charge", { cents: 1 }, "r/charge");
  expect(outside.effects).toHaveLength(1);
});
