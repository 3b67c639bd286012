// I4: rows are folds of the journal, after every single commit.
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { RetryableError } from "../../src/base/errors.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import { workflow } from "../../src/core/workflow.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";
import { openOn } from "../attacks/rig.ts";
import { errorOf, HOUR, openWorld, STORES, type Workflows, type World } from "../behaviour/harness.ts";
import { withoutColdStart } from "../cold-start.ts";
import { programs, propertyOptions, schedules } from "./program-arbitrary.ts";
import { runProgram, START } from "./rig.ts";
import { expectFold, foldingStore } from "./rows-are-folds.ts";

it("I4 B6 B13 rows of random programs are the fold of their journal after each commit", async () => {
  let commits = 0;
  await fc.assert(
    fc.asyncProperty(programs({ maxCalls: 7 }), schedules, async (program, seed) => {
      const clock = manualClock(START);
      const { store, checks, failures } = foldingStore(memoryStore({ clock }));
      const story = await runProgram(program, { seed, clock, store });
      expect(story.errors).toEqual([]);
      expect(failures).toEqual([]);
      commits += checks();
    }),
    propertyOptions(200),
  );
  expect(commits).toBeGreaterThan(600);
}, 600_000);

/** An engine whose every commit is compared. */
async function folding(world: World, workflows: Workflows): Promise<Pawl> {
  const { store, failures } = foldingStore(world.store);
  onTestFinished(() => expect(failures).toEqual([]));
  return openOn(world.store, { commit: store.commit }, workflows);
}

async function settled(world: World, pawl: Pawl): Promise<void> {
  await pawl.idle();
  await world.settle();
  for (const { id } of await world.store.runs({ limit: 99 })) await expectFold(world.store, id);
}

describe.each(STORES)("on %s the rows are the fold of the journal", (kind) => {
  const child = workflow("child", async (ctx) => {
    ctx.set("seen", 1);
    return ctx.waitFor("go");
  });

  it("I4 B6 for a parent and its children, called and spawned, and when the parent is cancelled", async () => {
    const parent = workflow("parent", async (ctx) => {
      await ctx.spawn(child, undefined, { key: "free" });
      const first = await ctx.call(child, undefined, { key: "first" });
      ctx.cost({ usd: 1, tokens: 3 });
      await Promise.all([ctx.call(child, undefined, { key: "second" }), ctx.sleep("1h"), ctx.waitFor("x")]);
      return first;
    });
    const world = await openWorld(kind);
    const pawl = await folding(world, [parent, child]);
    await pawl.start(parent, undefined, { id: "p" });
    await settled(world, pawl);
    const kids = (await pawl.list({ parent: "p" })).runs;
    for (const { id } of kids) await pawl.signal(id, "go", 1);
    await settled(world, pawl);
    expect((await world.store.waits({ run: "p" })).map(({ key }) => key)).toEqual([
      "child:second",
      "signal:x",
      "timer:sleep",
    ]);
    await pawl.cancel("p");
    await settled(world, pawl);
    expect(await world.store.waits({})).toEqual([]);
  });

  it("I4 B6 for a step that is tried again, beside other waits", async () => {
    const flaky = workflow({ name: "flaky", retry: { base: "1h", cap: "1h", jitter: false } }, async (ctx) => {
      const step = ctx.step("s", ({ attempt }) => {
        if (attempt < 3) throw new RetryableError("not yet");
        return attempt;
      });
      return (await Promise.all([step, ctx.waitFor("go", { timeout: "10 days", default: 0 })]))[0];
    });
    const world = await openWorld(kind);
    const pawl = await folding(world, [flaky]);
    await pawl.start(flaky, undefined, { id: "r" });
    await settled(world, pawl);
    expect((await world.store.waits({ run: "r" })).map(({ key }) => key)).toEqual(["retry:s", "signal:go"]);
    const fork = await pawl.fork("r", { at: (await world.store.journal("r")).length });
    await expectFold(world.store, fork.id);
    await settled(world, pawl);
    for (let i = 0; i < 4; i++) {
      await world.advance(HOUR);
      await settled(world, pawl);
    }
    for (const id of ["r", fork.id]) await pawl.signal(id, "go");
    await settled(world, pawl);
    expect(await pawl.get("r").result()).toBe(3);
    expect(await fork.result()).toBe(3);
  });

  it("I4 B6 for a run that is parked, decided and goes on", async () => {
    withoutColdStart("its code leaves the journal on purpose");
    const asking = (name: string) =>
      workflow("asking", async (ctx) => {
        ctx.set("step", name);
        await ctx.waitFor("go");
        return ctx.step(name, () => name);
      });
    const old = workflow("asking", async (ctx) => {
      await ctx.sleep("1h");
      return ctx.waitFor("go");
    });
    const world = await openWorld(kind);
    const first = await folding(world, [old]);
    await first.start(old, undefined, { id: "r" });
    await settled(world, first);
    await first.close();
    const second = await folding(world, [asking("a")]);
    await world.advance(HOUR);
    await settled(world, second);
    expect((await world.store.waits({ run: "r" })).map(({ key }) => key)).toEqual(["decision", "timer:sleep"]);
    await second.close();
    const third = await folding(world, [old]);
    await third.resolve("r", "retry");
    await settled(world, third);
    await third.signal("r", "go", "went");
    await settled(world, third);
    expect(await third.get("r").result()).toBe("went");
  });

  it("I4 B6 P10 for generations, deadlines and forks", async () => {
    const looping = workflow({ name: "looping", deadline: "1 day" }, async (ctx, n: number) => {
      ctx.set("n", n);
      ctx.cost({ usd: n });
      void ctx.sleep("5h");
      await ctx.waitFor("next", { timeout: "1h", default: null });
      if (n < 2) return ctx.continueAs(n + 1);
      return ctx.waitFor("never");
    });
    const world = await openWorld(kind);
    const pawl = await folding(world, [looping]);
    await pawl.start(looping, 0, { id: "r" });
    for (let i = 0; i < 3; i++) {
      await settled(world, pawl);
      await world.advance(HOUR);
    }
    await settled(world, pawl);
    const { length } = await world.store.journal("r");
    const fork = await pawl.fork("r", { at: length });
    await expectFold(world.store, fork.id);
    await settled(world, pawl);
    await world.advance(25 * HOUR);
    await settled(world, pawl);
    expect(await errorOf(pawl.get("r").result())).toMatchObject({ code: "deadline_exceeded" });
  });
});
