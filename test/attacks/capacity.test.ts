import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { workflow } from "../../src/core/workflow.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";
import { gate, openWorld, STORES_AT_ONCE } from "../behaviour/harness.ts";
import { openOn, rounds } from "./rig.ts";

describe.each(STORES_AT_ONCE)("at capacity on %s", (store) => {
  it("I18 B11 children that are called together do not exceed it", async () => {
    const world = await openWorld(store);
    let most = 0;
    let now = 0;
    const child = workflow("child", async (ctx) =>
      ctx.step("a", async () => {
        most = Math.max(most, ++now);
        await rounds(3);
        now--;
      }),
    );
    const parent = workflow("parent", async (ctx) => Promise.all(Array.from({ length: 12 }, () => ctx.call(child))));
    const pawl = await world.open([parent, child], { concurrency: 3 });
    await pawl.run(parent);
    expect(most).toBeLessThanOrEqual(3);
  });

  it("I18 starts with keys that come together do not exceed it", async () => {
    const world = await openWorld(store);
    const hold = gate();
    let begun = 0;
    const holding = workflow("holding", async (ctx) =>
      ctx.step("a", () => {
        begun++;
        return hold.passed;
      }),
    );
    const pawl = await world.open([holding], { concurrency: 3 });
    const keys = Array.from({ length: 12 }, (_, i) => `k${i}`);
    const runs = await Promise.all(keys.map((key) => pawl.start(holding, undefined, { key })));
    await world.settle();
    expect(begun).toBe(3);
    hold.open();
    await Promise.all(runs.map((run) => run.result()));
  });
});

describe.each(STORES_AT_ONCE)("runs that are due soon on %s", (store) => {
  it("P33 stay in memory, claimed, while there is room; a longer sleep is a row alone", async () => {
    const world = await openWorld(store);
    let bodies = 0;
    const napping = workflow("napping", async (ctx) => {
      bodies++;
      for (let nap = 0; nap < 3; nap++) await ctx.sleep(500);
      await ctx.sleep(1500);
    });
    const pawl = await world.open([napping]);
    const run = await pawl.start(napping);
    const owner = async () => (await world.store.run(run.id))?.owner;
    for (let nap = 0; nap < 3; nap++) {
      await world.settle();
      expect([bodies, await owner()]).toEqual([1, (await pawl.workers())[0]?.id]);
      await world.advance(500);
    }
    expect([bodies, await owner()]).toEqual([1, null]);
    await world.advance(1500);
    await run.result();
    expect(bodies).toBe(2);
  });

  it.each([
    ["sleeps", 900],
    ["backs off", 700],
  ])("I19 P33 do not keep others out of a full worker: one that %s again and again", async (how, ms) => {
    const world = await openWorld(store);
    const restless = workflow(
      { name: "restless", retry: { max: 50, base: ms, factor: 1, jitter: false, on: "any" } },
      (ctx) =>
        how === "sleeps"
          ? (async () => {
              for (let nap = 0; nap < 20; nap++) await ctx.sleep(ms);
              return "rested";
            })()
          : ctx.step("s", ({ attempt }) => {
              if (attempt < 20) throw new Error("not yet");
              return "rested";
            }),
    );
    const quick = workflow("quick", async (ctx) => ctx.step("s", () => "done"));
    const pawl = await world.open([restless, quick], { concurrency: 1, poll: "1 hour" });
    const first = await pawl.start(restless);
    await world.advance(2 * ms + 100);
    // It waits in memory, and the worker is full of it.
    expect((await world.store.run(first.id))?.owner).not.toBe(null);
    const second = await pawl.start(quick);
    await world.settle();
    expect((await second.status()).status).toBe("succeeded");
    await world.advance(20 * ms);
    expect(await first.result()).toBe("rested");
  });

  it("P33 parents stay in a full worker while children of theirs run there: they are not loaded once per child", async () => {
    const world = await openWorld(store);
    const holds = Array.from({ length: 4 }, () => gate());
    let bodies = 0;
    const child = workflow("child", async (ctx, n: number) => ctx.step("s", () => holds[n]?.passed));
    const parent = workflow("parent", async (ctx) => {
      bodies++;
      await Promise.all([0, 1, 2].map((n) => ctx.call(child, n)));
      return "done";
    });
    const pawl = await world.open([parent, child], { concurrency: 4 });
    const run = await pawl.start(parent);
    await world.settle();
    holds[0]?.open();
    await world.settle();
    const others = await Promise.all(["in", "out"].map((key) => pawl.start(child, 3, { key })));
    await world.settle();
    const owners = await Promise.all(others.map(async ({ id }) => (await world.store.run(id))?.owner));
    expect(owners.filter((owner) => owner === null)).toHaveLength(1);
    const before = bodies;
    for (const hold of holds) {
      hold.open();
      await world.settle();
    }
    expect([await run.result(), bodies]).toEqual(["done", before]);
  });
});

describe("a worker that is full", () => {
  it("I27 does not ask the store again and again for the sleeper that is due", async () => {
    const store = memoryStore({ clock: systemClock, leaseClock: systemClock });
    const hold = gate();
    const holding = workflow("holding", async (ctx) => ctx.step("a", () => hold.passed));
    const sleeping = workflow("sleeping", async (ctx) => ctx.sleep(1500));
    let asked = 0;
    const pawl = await openOn(
      store,
      {
        nextWake: () => {
          asked++;
          return store.nextWake();
        },
      },
      [holding, sleeping],
      {
        concurrency: 1,
        poll: "10 minutes",
      },
    );
    const sleeper = await pawl.start(sleeping);
    await expect.poll(async () => (await store.run(sleeper.id))?.owner, { timeout: 10_000 }).toBe(null);
    const run = await pawl.start(holding);
    await expect
      .poll(async () => systemClock.now() > ((await store.run(sleeper.id))?.wakeAt ?? Number.POSITIVE_INFINITY), {
        timeout: 5000,
      })
      .toBe(true);
    asked = 0;
    const end = systemClock.now() + 100;
    while (systemClock.now() < end) await rounds(1);
    expect(asked).toBeLessThan(5);
    hold.open();
    await run.result();
    await sleeper.result();
  });
});
