import { describe, expect, it } from "vitest";
import { type ManualClock, manualClock } from "../../src/base/clock.ts";
import type { PawlOptions } from "../../src/client/pawl-options.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { processIdentity } from "../../src/worker/process-identity.ts";
import { DAY, errorOf, gate, MINUTE, openWorld, STORES, type World } from "./harness.ts";

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
  it("P25 I11 B22 are found by their lease: another worker takes their runs over, not before", async () => {
    const leaseClock = manualClock();
    const world = await openWorld(store, { leaseClock });
    const attempts: number[] = [];
    const working = workflow("working", async (ctx) =>
      ctx.step("s", ({ attempt }) => {
        attempts.push(attempt);
        return attempt === 1 ? new Promise<never>(() => {}) : "taken over";
      }),
    );
    const first = await world.open([working]);
    await first.start(working, undefined, { id: "r" });
    await world.settle();
    const second = await world.open([working]);
    // Four leases long it works, and beats.
    await pass(world, leaseClock, 60);
    expect((await second.get("r").status()).status).toBe("running");
    world.kill(first);
    await pass(world, leaseClock, 14);
    expect((await second.get("r").status()).status).toBe("running");
    expect(attempts).toEqual([1]);
    await pass(world, leaseClock, 8);
    expect(await second.get("r").status()).toMatchObject({ status: "succeeded", output: "taken over" });
    expect(attempts).toEqual([1, 2]);
  });

  it("B3 are known by their lease, never by their name: a new process of the same name leaves a draining one alone", async () => {
    const leaseClock = manualClock();
    const world = await openWorld(store, { leaseClock });
    const hold = gate<string>();
    const attempts: string[] = [];
    const working = workflow("working", async (ctx) =>
      ctx.step("s", ({ attempt }) => {
        attempts.push(`${ctx.run.id} ${attempt}`);
        return attempt === 1 ? hold.passed : "taken over";
      }),
    );
    const first = await world.open([working], { name: "shop" });
    await first.start(working, undefined, { id: "old" });
    await world.settle();
    const second = await world.open([working], { name: "shop" });
    void first.close({ drain: "1 hour" });
    await second.start(working, undefined, { id: "new" });
    await pass(world, leaseClock, 60);
    const workers = await second.workers();
    expect(workers.map(({ name, runs }) => ({ name, runs }))).toEqual([
      { name: "shop", runs: 1 },
      { name: "shop", runs: 1 },
    ]);
    expect(attempts).toEqual(["old 1", "new 1"]);
    world.kill(first);
    await pass(world, leaseClock, 21);
    expect(await second.get("old").result()).toBe("taken over");
    expect(attempts).toEqual(["old 1", "new 1", "old 2"]);
    expect((await world.store.workers()).map(({ id }) => id)).toEqual([(await world.store.run("new"))?.owner]);
    hold.open("done");
  });

  it("B5 leave a run between two steps: a worker with room for one goes on with it, and then with those behind it", async () => {
    const world = await openWorld(store);
    const elsewhere = gate();
    const begun: string[] = [];
    const working = workflow("working", async (ctx) => {
      const a = await ctx.step("a", ({ attempt }) => begun.push(`${ctx.run.id} a ${attempt}`));
      await elsewhere.passed;
      return [a, await ctx.step("b", ({ attempt }) => begun.push(`${ctx.run.id} b ${attempt}`))];
    });
    const first = await world.open([working], { concurrency: 1 });
    await first.start(working, undefined, { id: "r" });
    await world.settle();
    await first.start(working, undefined, { id: "behind" });
    await world.settle();
    expect(await world.journal("r")).toEqual(["run.started", "step.started a", "step.completed a"]);
    elsewhere.open();
    const second = await world.restart([working], { concurrency: 1 });
    await second.idle();
    for (const id of ["r", "behind"]) expect((await second.get(id).status()).status).toBe("succeeded");
    expect(begun).toEqual(["r a 1", "r b 1", "behind a 1", "behind b 1"]);
  });

  it("B24 are none among workers that a run sleeps through: it wakes once, though it slept for ten leases", async () => {
    const leaseClock = manualClock();
    const world = await openWorld(store, { leaseClock });
    let steps = 0;
    const sleeping = workflow("sleeping", async (ctx) => {
      await ctx.sleep("150 s");
      return ctx.step("s", () => ++steps);
    });
    const pawls = [await world.open([sleeping]), await world.open([sleeping]), await world.open([sleeping])];
    const ids = async () => (await world.store.workers()).map(({ id }) => id).toSorted();
    const before = await ids();
    await pawls[0]?.start(sleeping, undefined, { id: "r" });
    for (let second = 0; second < 149; second++) {
      await pass(world, leaseClock, 1);
      await world.advance(1000);
    }
    expect(await world.journal("r")).toEqual(["run.started", "timer.set sleep"]);
    for (let second = 0; second < 20; second++) {
      await pass(world, leaseClock, 1);
      await world.advance(1000);
    }
    expect(await world.journal("r")).toEqual([
      "run.started",
      "timer.set sleep",
      "timer.fired sleep",
      "step.started s",
      "step.completed s",
      "run.succeeded",
    ]);
    expect(steps).toBe(1);
    expect(await ids()).toEqual(before);
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

/** Lets leases, polls and sweeps go on for so many seconds. */
async function pass(world: World, leaseClock: ManualClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    leaseClock.advance(1000);
    await world.settle();
  }
}

/** Does to a run what only a bug could: it waits, and for nothing. */
async function strand(store: Store, run: string): Promise<void> {
  await store.register({ id: "vandal", name: "vandal", leaseMs: 15_000, process: processIdentity(), handles: [] });
  await store.take("vandal", run);
  const row = { state: "waiting", release: true, readyAt: null, wakeAt: null } as const;
  await store.commit({ worker: "vandal", runs: [{ run, head: 1, entries: [], row }] });
  await store.retire("vandal");
}
