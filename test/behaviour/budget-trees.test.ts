import { describe, expect, it } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Context } from "../../src/core/context.ts";
import { countersOf } from "../../src/core/counters.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { openOn } from "../attacks/rig.ts";
import { DAY, errorOf, gate, openWorld, STORES } from "./harness.ts";

const cents = (usd: number) => ({ spend: { usd } });

/** A child that pays once, and its parent, which has so many of them at a time. */
function family(children: number, usd = 0.1) {
  const paid: number[] = [];
  const child = workflow("child", (ctx: Context, n: number) => ctx.step("pay", () => void paid.push(n), cents(usd)));
  const parent = workflow({ name: "parent", budget: { usd: 1 } }, async (ctx) => {
    await ctx.map(
      Array.from({ length: children }, (_, i) => i),
      (i) => ctx.call(child, i),
    );
    return "done";
  });
  return { child, parent, paid };
}

async function parkedRuns(pawl: Pawl): Promise<string[]> {
  const { runs } = await pawl.list({ limit: 200 });
  return runs.filter(({ state }) => state === "parked").map(({ id }) => id);
}

describe.each(STORES)("a budget of a tree of runs on %s", (store) => {
  it("X-13 I26 holds for all children together, and one raise lets all of them go on", async () => {
    const world = await openWorld(store);
    const { child, parent, paid } = family(14);
    const pawl = await world.open([parent, child]);
    const run = await pawl.start(parent, undefined, { id: "r" });
    await pawl.idle();
    expect(paid).toHaveLength(10);
    const parked = await parkedRuns(pawl);
    expect(parked).toHaveLength(4);
    expect((await pawl.get(parked[0] as string).status()).budget).toMatchObject({ run: "r", spent: { usd: 1 } });
    await pawl.resolve(parked[0] as string, { choice: "raise", value: { usd: 1.4 } });
    expect(await run.result()).toBe("done");
    expect(paid.sort((a, b) => a - b)).toEqual(Array.from({ length: 14 }, (_, i) => i));
    expect((await run.status()).budget).toEqual({
      run: "r",
      limits: { usd: 1.4 },
      spent: { usd: 1.4 },
      reserved: { usd: 0 },
    });
  });

  it("X-13 a child's own budget is a tighter one below: both apply, and what it has spent stays spent above", async () => {
    const world = await openWorld(store);
    const child = workflow({ name: "child", budget: { usd: 0.3 } }, async (ctx, last: number) => {
      await ctx.step("a", () => 0, cents(0.2));
      await ctx.step("b", () => 0, cents(last));
      return "paid";
    });
    const parent = workflow({ name: "parent", budget: { usd: 0.9, onExceeded: "fail" } }, async (ctx) => {
      await ctx.spawn(child, 0.2);
      await ctx.call(child, 0.6, { budget: { usd: 9 } });
    });
    const pawl = await world.open([parent, child]);
    const run = await pawl.start(parent, undefined, { id: "r" });
    await pawl.idle();
    // The one that was called met the budget above, the spawned one its own.
    const error = await errorOf(run.result());
    expect(error).toMatchObject({ code: "child_failed", cause: { code: "budget_exceeded", fields: { budget: "r" } } });
    const [spawned = ""] = await parkedRuns(pawl);
    expect((await pawl.get(spawned).status()).parked?.detail).toMatchObject({ budget: spawned, limit: 0.3 });
    expect((await run.status()).budget?.spent).toEqual({ usd: 0.4 });
    // What lives on is still counted, though the root has ended.
    await pawl.resolve(spawned, { choice: "raise", value: { usd: 1 } });
    expect(await pawl.get(spawned).result()).toBe("paid");
    expect((await run.status()).budget?.spent).toEqual({ usd: 0.6 });
  });

  it("X-13 calls in parallel: those that fit run to their end, and only then the run is parked", async () => {
    const world = await openWorld(store);
    const slow = gate();
    const done: string[] = [];
    const flow = workflow({ name: "parallel", budget: { usd: 1 } }, async (ctx) => {
      const call = (name: string) =>
        ctx.step(
          name,
          async () => {
            await slow.passed;
            done.push(name);
          },
          cents(0.4),
        );
      await Promise.all([call("a"), call("b"), call("c"), ctx.step("free", () => 0), call("d")]);
      return "all";
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    expect((await run.status()).state).toBe("running");
    expect((await run.status()).budget).toMatchObject({ spent: { usd: 0 }, reserved: { usd: 0.8 } });
    slow.open();
    await pawl.idle();
    expect(done).toEqual(["a", "b"]);
    expect((await run.status()).parked?.detail).toMatchObject({ steps: ["c", "d"], used: 0.8 });
    await pawl.resolve("r", { choice: "raise", value: { usd: 1.2 } });
    await pawl.idle();
    expect(done).toEqual(["a", "b", "c"]);
    await pawl.resolve("r", { choice: "raise", value: { usd: 2 } });
    expect(await run.result()).toBe("all");
    expect(done).toEqual(["a", "b", "c", "d"]);
  });

  it("X-13 what others of the run have reserved and not spent is room for the rest", async () => {
    const world = await openWorld(store);
    const flow = workflow({ name: "parallel", budget: { usd: 1 } }, async (ctx) => {
      const call = (name: string) => ctx.step(name, ({ spent }) => spent({ usd: 0.1 }), cents(0.5));
      await Promise.all([call("a"), call("b"), call("c"), call("d")]);
      return "all";
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    expect(await run.result()).toBe("all");
    expect((await run.status()).budget).toMatchObject({ spent: { usd: 0.4 }, reserved: { usd: 0 } });
  });

  it("X-13 a budget of the start counts instead of the workflow's, also where only the name is known", async () => {
    const world = await openWorld(store);
    const { child, parent } = family(12);
    const client = await world.open();
    await client.start("parent", undefined, { id: "name", version: "1.0.0" });
    await client.start("parent", undefined, { id: "more", version: "1.0.0", budget: { usd: 5 } });
    await client.start("parent", undefined, { id: "none", version: "1.0.0", budget: {} });
    const pawl = await world.open([parent, child]);
    expect(await pawl.get("more").result()).toBe("done");
    expect(await pawl.get("none").result()).toBe("done");
    await pawl.idle();
    expect(await parkedRuns(pawl)).toHaveLength(2);
    expect((await client.get("name").status()).budget).toMatchObject({ limits: { usd: 1 }, spent: { usd: 1 } });
    expect((await client.get("more").status()).budget).toMatchObject({ limits: { usd: 5 }, spent: { usd: 1.2 } });
    expect((await client.get("none").status()).budget).toBeUndefined();
  });

  it("X-13 P10 a new generation goes on with the same budget", async () => {
    const world = await openWorld(store);
    const flow = workflow({ name: "loop", budget: { usd: 1 } }, async (ctx, n: number): Promise<number> => {
      await ctx.step("pay", () => n, cents(0.4));
      return n === 3 ? n : ctx.continueAs(n + 1);
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, 1, { id: "r" });
    await pawl.idle();
    const { parked, budget, cost } = await run.status();
    expect(parked?.detail).toMatchObject({ unit: "usd", used: 0.8 });
    expect([budget?.spent, cost]).toEqual([{ usd: 0.8 }, { usd: 0.8 }]);
    await pawl.resolve("r", { choice: "raise", value: { usd: 2 } });
    expect(await run.result()).toBe(3);
    expect((await run.status()).cost?.["usd"]).toBeCloseTo(1.2, 9);
  });

  it("X-13 P10 a fork has the budget anew, and its inherited calls reserve for themselves", async () => {
    const world = await openWorld(store);
    const hanging = { is: true };
    const flow = workflow({ name: "forked", budget: { usd: 1 } }, async (ctx) => {
      await ctx.step("a", () => 1, cents(0.6));
      return ctx.step("b", () => (hanging.is ? new Promise<never>(() => {}) : 2), cents(0.3));
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    hanging.is = false;
    const fork = await pawl.fork("r", { at: 5 });
    expect(await fork.result()).toBe(2);
    const status = await fork.status();
    expect(status.budget).toEqual({ run: fork.id, limits: { usd: 1 }, spent: { usd: 0.3 }, reserved: { usd: 0 } });
    expect(status.cost?.["usd"]).toBeCloseTo(0.9, 9);
    expect((await run.status()).budget).toMatchObject({ run: "r", spent: { usd: 0.6 }, reserved: { usd: 0.3 } });
  });

  it("X-13 nothing of a budget is left when its run is gone", async () => {
    const world = await openWorld(store);
    const { child, parent } = family(3);
    const pawl = await world.open([parent, child]);
    await pawl.run(parent, undefined, { id: "r" });
    expect(await world.store.counters(countersOf("r"))).toEqual([{ key: "of/r/usd", value: 300_000 }]);
    await world.advance(1);
    const now = world.clock.now() + DAY;
    await world.store.purge({ succeededBefore: now, failedBefore: now, limit: 10 });
    expect(await world.store.counters("")).toEqual([]);
  });

  it("SP4 P19 a call that is under way when a cancel overtakes the end of its run is settled once", async () => {
    const world = await openWorld(store);
    const flow = workflow({ name: "hasty", budget: { usd: 1 } }, async (ctx) => {
      void ctx.step("hanging", () => new Promise<never>(() => {}), cents(0.3));
      await ctx.step("paid", () => 0, cents(0.2));
      return "ended";
    });
    // The cancel is in the store, but nobody has told the worker when the end of the run is on its way.
    let cancels = 0;
    const commit: Store["commit"] = async (batch) => {
      const isEnd = batch.runs.some((part) => part.entries.some(({ type }) => type === "run.succeeded"));
      if (isEnd && cancels++ === 0) await world.store.deliver({ to: "r", id: "c", kind: "cancel", name: "", data: "" });
      return world.store.commit(batch);
    };
    const run = await (await openOn(world.store, { commit }, [flow])).start(flow, undefined, { id: "r" });
    expect(await errorOf(run.result())).toMatchObject({ code: "cancelled" });
    expect((await world.journal("r")).filter((line) => line.startsWith("step.spent"))).toEqual([
      "step.spent paid",
      "step.spent hanging",
    ]);
    expect(await run.status()).toMatchObject({ cost: { usd: 0.5 }, budget: { spent: { usd: 0.5 } } });
  });

  it("X-13 P12 a call that nobody awaits keeps no run from its end, whether there is room for it or not", async () => {
    const world = await openWorld(store);
    const flow = workflow({ name: "hasty", budget: { usd: 1 } }, async (ctx) => {
      void ctx.step("too dear", () => 0, cents(2));
      void ctx.step("cheap", () => 0, cents(0.5));
      return "ended";
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    expect(await run.result()).toBe("ended");
    expect((await run.status()).budget).toMatchObject({ spent: { usd: 0 }, reserved: { usd: 0 } });
  });
});
