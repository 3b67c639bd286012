import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { workflow } from "../../src/core/workflow.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";
import { gate, openWorld, STORES } from "../behaviour/harness.ts";
import { openOn, rounds } from "./rig.ts";

describe.each(STORES)("at capacity on %s", (store) => {
  it("I18 children that are called together do not exceed it", async () => {
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
    await expect.poll(async () => (await store.run(sleeper.id))?.owner).toBe(null);
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
