import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import type { PawlOptions } from "../../src/client/pawl.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { processIdentity } from "../../src/worker/process-identity.ts";
import { DAY, errorOf, MINUTE, openWorld, STORES } from "./harness.ts";

const good = workflow("good", async (ctx) => ctx.step("s", () => 1));
const bad = workflow("bad", async () => Promise.reject(new Error("x")));
const waiting = workflow({ name: "waiting", deadline: "1000 days" }, async (ctx) => ctx.waitFor("go"));

/** An engine whose housekeeping follows a clock that the test moves. */
async function kept(store: (typeof STORES)[number], retention?: PawlOptions["retention"]) {
  const leaseClock = manualClock();
  const world = await openWorld(store, { leaseClock });
  const pawl = await world.open([good, bad, waiting], retention === undefined ? {} : { retention });
  const keepHouse = async () => {
    for (let ms = 0; ms < MINUTE; ms += 5000) {
      leaseClock.advance(5000);
      await world.settle();
    }
  };
  await pawl.run(good, undefined, { id: "good", key: "k", tags: ["t"] });
  await errorOf(pawl.run(bad, undefined, { id: "bad" }));
  await pawl.start(waiting, undefined, { id: "waiting" });
  const cancelled = await pawl.start(waiting, undefined, { id: "cancelled" });
  await cancelled.cancel();
  await world.settle();
  const left = async () => (await pawl.list()).runs.map((run) => run.id).toSorted();
  return { world, pawl, keepHouse, left };
}

describe.each(STORES)("retention on %s", (store) => {
  it("keeps succeeded runs 30 days, failed and cancelled ones 90, and unfinished ones for ever", async () => {
    const { world, keepHouse, left } = await kept(store);
    const expectLeft = async (days: number, ids: string[]) => {
      await world.advance(days * DAY);
      await keepHouse();
      expect(await left()).toEqual(ids);
    };
    await expectLeft(30, ["bad", "cancelled", "good", "waiting"]);
    await expectLeft(1, ["bad", "cancelled", "waiting"]);
    await expectLeft(59, ["bad", "cancelled", "waiting"]);
    await expectLeft(1, ["waiting"]);
    await expectLeft(500, ["waiting"]);
  });

  it("takes other times, or none", async () => {
    const short = await kept(store, { succeeded: "1h", failed: "2 days" });
    await short.world.advance(DAY);
    await short.keepHouse();
    expect(await short.left()).toEqual(["bad", "cancelled", "waiting"]);
    const none = await kept(store, false);
    await none.world.advance(999 * DAY);
    await none.keepHouse();
    expect(await none.left()).toEqual(["bad", "cancelled", "good", "waiting"]);
  });

  it("I20 removes everything of a purged run: journal, state, key, tags", async () => {
    const { world, pawl } = await kept(store);
    const now = world.clock.now();
    expect(await world.store.purge({ succeededBefore: now + 1, failedBefore: now, limit: 10 })).toBe(1);
    expect(await world.store.journal("good")).toEqual([]);
    expect(await world.store.state("good")).toEqual([]);
    expect(await world.store.key("start:good", "k")).toBeNull();
    expect((await pawl.list({ tag: "t" })).runs).toEqual([]);
    expect(await errorOf(pawl.get("good").result())).toMatchObject({ code: "run_not_found" });
    expect(await pawl.run(good, undefined, { id: "good" })).toBe(1);
  });
});

describe.each(STORES)("dead workers on %s", (store) => {
  it("P25 I11 are found by their lease: another worker takes their runs over, not before", async () => {
    const leaseClock = manualClock();
    const world = await openWorld(store, { leaseClock });
    const working = workflow("working", async (ctx) =>
      ctx.step("s", ({ attempt }) => (attempt === 1 ? new Promise<never>(() => {}) : "taken over")),
    );
    const first = await world.open([working]);
    await first.start(working, undefined, { id: "r" });
    await world.settle();
    const second = await world.open([working]);
    const pass = async (seconds: number) => {
      for (let i = 0; i < seconds; i++) {
        leaseClock.advance(1000);
        await world.settle();
      }
    };
    await pass(60);
    expect((await second.get("r").status()).status).toBe("running");
    world.kill(first);
    await pass(14);
    expect((await second.get("r").status()).status).toBe("running");
    await pass(8);
    expect(await second.get("r").status()).toMatchObject({ status: "succeeded", output: "taken over" });
  });

  it("I10 puts a run back to work that nothing would wake, and says so", async () => {
    const leaseClock = manualClock();
    const world = await openWorld(store, { leaseClock });
    const client = await world.open();
    const run = await client.start("good", undefined, { version: "1.0.0" });
    await strand(world.store, run.id);
    expect((await world.store.orphans()).map((one) => one.run)).toEqual([run.id]);
    const pawl = await world.open([good]);
    await pawl.idle();
    expect((await run.status()).status).toBe("waiting");
    for (let ms = 0; ms < MINUTE; ms += 5000) {
      leaseClock.advance(5000);
      await world.settle();
    }
    expect((await run.status()).status).toBe("succeeded");
    expect(world.lines.some((line) => line.level === "error" && line.message.includes(run.id))).toBe(true);
  });
});

/** Does to a run what only a bug could: it waits, and for nothing. */
async function strand(store: Store, run: string): Promise<void> {
  await store.register({ id: "vandal", name: "vandal", leaseMs: 15_000, process: processIdentity(), handles: [] });
  await store.take("vandal", run);
  const row = { state: "waiting", release: true, readyAt: null, wakeAt: null } as const;
  await store.commit({ worker: "vandal", runs: [{ run, head: 1, entries: [], row }] });
  await store.retire("vandal");
}
