import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { PawlError, RetryableError } from "../../src/base/errors.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, MINUTE, openWorld, STORES_AT_ONCE } from "../behaviour/harness.ts";
import { withoutColdStart } from "../cold-start.ts";
import { openOn, rounds, stateOf } from "./rig.ts";

describe.each(STORES_AT_ONCE)("cancel on %s", (store) => {
  it("P19 that comes while its run is being parked still ends it", async () => {
    withoutColdStart("its code leaves the journal on purpose");
    const world = await openWorld(store);
    const first = workflow("w", async (ctx) => {
      await ctx.step("a", () => 1);
      await ctx.waitFor("go");
    });
    const other = workflow("w", async (ctx) => {
      await ctx.step("other", () => 1);
    });
    await (await world.open([first])).start(first, undefined, { id: "r" });
    await world.settle();
    for (const pawl of [await world.restart([])]) await pawl.signal("r", "go");
    const parks = gate();
    const pawl = await openOn(
      world.store,
      {
        commit: async (request) => {
          const isPark = request.runs.some((part) => part.entries.some((entry) => entry.type === "run.parked"));
          if (isPark) await parks.passed;
          return world.store.commit(request);
        },
      },
      [other],
    );
    await rounds();
    const cancelled = pawl.cancel("r");
    await rounds();
    parks.open();
    expect(await cancelled).toEqual({ outcome: "cancelled" });
  });

  it("P19 asks nobody about an interrupted step of a run that is to be cancelled", async () => {
    const world = await openWorld(store);
    const hold = gate();
    const asking = workflow("asking", async (ctx) => {
      await ctx.step("charge", () => hold.passed, { recovery: "ask" });
    });
    await (await world.open([asking])).start(asking, undefined, { id: "r" });
    await world.settle();
    const client = await world.restart([]);
    const cancelled = client.cancel("r");
    await world.settle();
    await world.open([asking]);
    expect(["cancelled", "cancelling"]).toContain((await cancelled).outcome);
  });

  it("P19 does not wait for ever for a worker that is dead", async () => {
    const leaseClock = manualClock();
    const world = await openWorld(store, { leaseClock });
    const hold = gate();
    const hanging = workflow("hanging", async (ctx) => ctx.step("a", () => hold.passed));
    const dead = await world.open([hanging]);
    await dead.start(hanging, undefined, { id: "r" });
    await world.settle();
    world.kill(dead);
    const client = await world.open([]);
    const cancelled = client.cancel("r");
    for (let second = 0; second < 60; second++) {
      leaseClock.advance(1000);
      await world.settle();
    }
    expect(await stateOf(cancelled)).toBe("resolved");
  });

  it("P19 without a body survives a store that is away for a moment", async () => {
    const leaseClock = manualClock();
    const world = await openWorld(store, { leaseClock });
    const waiting = workflow("waiting", async (ctx) => ctx.waitFor("go"));
    const worker = await world.open([waiting]);
    await worker.start(waiting, undefined, { id: "r" });
    await world.settle();
    await worker.close();
    let left = 1;
    const client = await openOn(
      world.store,
      {
        commit: async (request) => {
          if (left-- > 0) throw new PawlError("storage_unavailable", "away");
          return world.store.commit(request);
        },
      },
      [],
    );
    await client.cancel("r").catch(() => {});
    const again = client.cancel("r");
    for (let second = 0; second < 20; second++) {
      leaseClock.advance(1000);
      await rounds(50);
    }
    expect(await stateOf(again)).toBe("resolved");
    expect((await world.store.run("r"))?.state).toBe("cancelled");
  });
});

describe("after the deadline", () => {
  it("I13 the clock is not asked again and again while a body cleans up", async () => {
    const world = await openWorld("memory");
    const hold = gate();
    const slow = workflow({ name: "slow", deadline: "1 minute" }, async (ctx) => {
      try {
        await ctx.waitFor("never");
      } finally {
        await hold.passed;
      }
    });
    const pawl = await world.open([slow]);
    const run = await pawl.start(slow);
    await world.settle();
    await world.advance(MINUTE);
    expect(world.clock.nextDue()).toBeGreaterThan(world.clock.now());
    hold.open();
    await run.result().catch(() => {});
  });
});

it("CO4 P19 a client that cancels a run that is being undone leaves the rest of that to whoever has its code", async () => {
  const world = await openWorld("memory");
  const undone: string[] = [];
  let isBack = false;
  const flow = workflow("flow", async (ctx) => {
    const undo = () => (isBack ? void undone.push("seat 7") : new Promise<never>(() => {}));
    await ctx.step("reserve", () => "seat 7", { undo });
    throw new Error("out of stock");
  });
  const pawl = await world.open([flow]);
  await pawl.start(flow, undefined, { id: "r" });
  await world.settle();
  expect(await world.journal("r")).toContain("step.started reserve/undo");
  world.kill(pawl);
  await world.fence();
  isBack = true;
  const client = await world.open();
  const cancelling = client.cancel("r");
  await world.settle();
  expect((await client.get("r").status()).state).toBe("compensating");
  await world.open([flow]);
  expect(await cancelling).toMatchObject({ outcome: expect.stringMatching(/cancell(ing|ed)/) });
  await world.settle();
  expect(undone).toEqual(["seat 7"]);
  expect((await client.get("r").status()).state).toBe("cancelled");
});

it("C-15 E-15 a run that is cancelled and cannot undo everything ends as failed, not as cancelled: somebody has to look", async () => {
  const world = await openWorld("memory");
  const flow = workflow("flow", async (ctx) => {
    const undo = () => {
      throw new Error("the seat is taken");
    };
    await ctx.step("reserve", () => "seat 7", { undo, retry: false });
    await ctx.waitFor("never");
  });
  const pawl = await world.open([flow]);
  const run = await pawl.start(flow, undefined, { id: "r" });
  await world.settle();
  await run.cancel({ compensate: true });
  expect(await errorOf(run.result())).toMatchObject({
    code: "compensation_incomplete",
    cause: { code: "cancelled" },
  });
  expect((await run.status()).state).toBe("failed");
});

it("P19 CO2 a step of the body that is to be tried again is not, once what the run did is being undone", async () => {
  const world = await openWorld("memory");
  const [stock, bank] = [gate<never>(), gate()];
  const begun: string[] = [];
  const flow = workflow("flow", async (ctx) => {
    await ctx.step("reserve", () => "seat 7", { undo: () => bank.passed, timeout: "1h" });
    const pay = ctx.step("pay", ({ attempt }) => {
      begun.push(`pay ${attempt}`);
      throw new RetryableError("busy");
    });
    await Promise.all([pay, ctx.step("ship", () => stock.passed)]);
  });
  const pawl = await world.open([flow]);
  const run = await pawl.start(flow, undefined, { id: "r" });
  await world.settle();
  stock.fail(new Error("out of stock"));
  await world.advance(10 * MINUTE);
  expect(begun).toEqual(["pay 1"]);
  bank.open();
  expect((await errorOf(run.result())).message).toBe("out of stock");
});
