import { describe, expect, it } from "vitest";
import { workflow } from "../../src/core/workflow.ts";
import { DAY, errorOf, gate, HOUR, openWorld, STORES } from "./harness.ts";

const YEARS_400 = 146_097 * DAY;
const LAST_DATE = 8.64e15;

describe.each(STORES)("odd times on %s", (store) => {
  it.each([
    ["a moment ago", (now: number) => now - 1],
    ["now", (now: number) => now],
    ["1970", () => 0],
    ["before 1970", () => -1],
    ["the first Date there is", () => -LAST_DATE],
    ["a fraction of a millisecond ago", (now: number) => now - 0.5],
  ])("I13 sleepUntil %s is over at once, live and in replay", async (_, due) => {
    const world = await openWorld(store);
    const sleeping = workflow("sleeping", async (ctx) => {
      await ctx.sleepUntil(due(ctx.now()));
      return ctx.waitFor("go");
    });
    await (await world.open([sleeping])).start(sleeping, undefined, { id: "r" });
    await world.settle();
    expect(await world.journal("r")).toContain("timer.fired sleep");
    const pawl = await world.restart([sleeping]);
    await pawl.signal("r", "go", "done");
    expect(await pawl.get("r").result()).toBe("done");
  });

  it.each([
    ["NaN", Number.NaN],
    ["Infinity", Number.POSITIVE_INFINITY],
    ["an invalid Date", new Date("soon")],
    ["text", "2030-01-01" as never],
    ["past the last Date", LAST_DATE + 1],
    ["far past the last Date", 1e300],
  ])("I13 sleepUntil %s is refused at the call", async (_, time) => {
    const world = await openWorld(store);
    const sleeping = workflow("sleeping", async (ctx) => (await errorOf(ctx.sleepUntil(time)))["code"]);
    expect(await (await world.open([sleeping])).run(sleeping)).toBe("invalid_argument");
  });

  it.each([
    ["2^31 - 1 ms", 2 ** 31 - 1],
    ["2^31 ms", 2 ** 31],
    ["2^31 + 1 ms", 2 ** 31 + 1],
    ["400 years", YEARS_400],
  ])("B43 I13 %s: a sleep, a wait, a step and a deadline end then, and not before", async (_, ms) => {
    const world = await openWorld(store);
    const flows = [
      workflow({ name: "sleep", deadline: ms + DAY }, async (ctx) => ctx.sleep(ms)),
      workflow({ name: "wait", deadline: ms + DAY }, async (ctx) => ctx.waitFor("never", { timeout: ms, default: 1 })),
      workflow({ name: "step", deadline: ms + DAY }, async (ctx) =>
        ctx.step("s", () => gate().passed, { timeout: ms, retry: false }),
      ),
      workflow({ name: "deadline", deadline: ms }, async (ctx) => ctx.waitFor("never")),
    ];
    const pawl = await world.open(flows);
    for (const flow of flows) await pawl.start(flow, undefined, { id: flow.name });
    const states = async () => Promise.all(flows.map(async ({ name }) => (await pawl.get(name).status()).status));
    await world.advance(ms - 1);
    expect(await states()).toEqual(["waiting", "waiting", "running", "waiting"]);
    await world.advance(1);
    expect(await states()).toEqual(["succeeded", "succeeded", "failed", "failed"]);
    expect((await pawl.get("step").status()).error).toMatchObject({ code: "step_timeout" });
    expect((await pawl.get("deadline").status()).error).toMatchObject({ code: "deadline_exceeded" });
  });

  it("I13 a timeout of 0 leaves no time: a wait ends at once, a step that has to wait fails, one that does not is done", async () => {
    const world = await openWorld(store);
    const hasty = workflow("hasty", async (ctx) => [
      await ctx.waitFor("x", { timeout: 0, default: "none" }),
      await ctx.step("at once", () => "done", { timeout: 0 }),
      (await errorOf(ctx.step("slow", () => gate().passed, { timeout: 0, retry: false })))["code"],
      await ctx.sleep(0),
    ]);
    const pawl = await world.open([hasty]);
    const run = await pawl.start(hasty);
    await world.advance(1);
    expect(await run.result()).toEqual(["none", "done", "step_timeout", undefined]);
  });

  it("I13 negative, endless and unreadable durations are refused before anything is written", async () => {
    const world = await openWorld(store);
    const any = workflow("any", async (ctx) => ctx.waitFor("go"));
    const pawl = await world.open([any]);
    for (const bad of [-1, Number.NaN, Number.POSITIVE_INFINITY, "-5s", "soon", 1e300]) {
      for (const options of [{ delay: bad }, { deadline: bad }])
        expect(await errorOf(pawl.start(any, undefined, options)), String(bad)).toMatchObject({
          code: "invalid_argument",
          message: expect.stringContaining(Object.keys(options)[0] as string),
        });
    }
    expect((await pawl.list()).runs).toEqual([]);
  });

  it("E-8 I13 a deadline before the run may begin: no step begins, and it fails when its time has come", async () => {
    const world = await openWorld(store);
    let begun = 0;
    const late = workflow("late", async (ctx) => ctx.step("s", () => begun++));
    const pawl = await world.open([late]);
    const deadline = new Date(world.clock.now() + HOUR);
    const delayed = await pawl.start(late, undefined, { delay: DAY, deadline });
    const past = await pawl.start(late, undefined, { deadline: new Date(0) });
    await world.advance(2 * DAY);
    for (const run of [delayed, past])
      expect(await run.status()).toMatchObject({ state: "failed", stopReason: "deadline_exceeded" });
    expect(begun).toBe(0);
  });
});
