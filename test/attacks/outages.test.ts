// Stores that are away for a while, for everybody, and answers that come too late.
import { describe, expect, it } from "vitest";
import { type ManualClock, manualClock } from "../../src/base/clock.ts";
import { PawlError } from "../../src/base/errors.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Commit, Store, Verdict } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, type Gate, gate, openWorld, type Workflows } from "../behaviour/harness.ts";
import { openOn, rounds, silent } from "./rig.ts";

const REACHES_THE_STORE = [
  "register",
  "heartbeat",
  "workers",
  "fence",
  "claim",
  "nextWake",
  "take",
  "owned",
  "commit",
  "deliver",
  "orphans",
  "purge",
] as const;

interface Net {
  isDown: boolean;
  /** Calls that did not get through. */
  refused: number;
}

/** The store as one sees it whose network can go down. */
function behind(net: Net, store: Store): Partial<Store> {
  return Object.fromEntries(
    REACHES_THE_STORE.map((name) => {
      const call = store[name].bind(store) as (...args: unknown[]) => Promise<unknown>;
      const guarded = async (...args: unknown[]) => {
        if (!net.isDown) return call(...args);
        net.refused++;
        throw new PawlError("storage_unavailable", "The store is away.");
      };
      return [name, guarded];
    }),
  );
}

/** Two steps; the first waits for the gate. Counts how often each began, by run. */
function counted(hold: Gate<void>): { begun: Map<string, number>; workflows: Workflows } {
  const begun = new Map<string, number>();
  const count = (key: string) => void begun.set(key, (begun.get(key) ?? 0) + 1);
  const flow = workflow("flow", async (ctx) => {
    await ctx.step("a", ({ key }) => {
      count(key);
      return hold.passed;
    });
    return ctx.step("b", ({ key }) => count(key));
  });
  return { begun, workflows: [flow] };
}

async function pass(leaseClock: ManualClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    leaseClock.advance(1000);
    await rounds(20);
  }
}

async function startMany(pawl: Pawl, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => pawl.start("flow")));
  await rounds();
}

describe("a store that is away for two leases", () => {
  it("B70 I19 fails no run and starts no step twice: 1,000 runs go on when it is back, after few and spread tries", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const net = { isDown: false, refused: 0 };
    const hold = gate();
    const { begun, workflows } = counted(hold);
    const pauses: number[] = [];
    const after = (ms: number, fire: () => void) => {
      if (net.isDown && ms < 1000) pauses.push(ms);
      return leaseClock.after(ms, fire);
    };
    const pawl = await openOn(
      world.store,
      { ...behind(net, world.store), leaseClock: { ...leaseClock, after } },
      workflows,
    );
    await startMany(pawl, 1000);
    net.isDown = true;
    hold.open();
    await rounds();
    const refused = errorOf(pawl.start("flow"));
    await pass(leaseClock, 30);
    expect(await refused).toMatchObject({ code: "storage_unavailable" });
    expect(net.refused).toBeLessThan(150);
    // Also when the pauses no longer grow, they differ.
    const longest = pauses.slice(7);
    expect(longest.length).toBeGreaterThan(5);
    expect(new Set(longest).size).toBeGreaterThan(longest.length / 2);
    net.isDown = false;
    await pass(leaseClock, 5);
    await rounds(2000);
    const left = await world.store.runs({ states: ["accepted", "running", "waiting", "failed", "parked"], limit: 9 });
    expect(left).toEqual([]);
    expect([begun.size, Math.max(...begun.values())]).toEqual([2000, 1]);
  });

  it("B19 P25 ends with both workers alive and none of them taken for dead", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const hold = gate();
    const { begun, workflows } = counted(hold);
    const said: string[] = [];
    const logger = { ...silent, info: (message: string) => void said.push(message) };
    const nets: Net[] = [];
    for (const name of ["one", "two"]) {
      const net = { isDown: false, refused: 0 };
      await startMany(await openOn(world.store, behind(net, world.store), workflows, { name, logger }), 20);
      nets.push(net);
    }
    for (const net of nets) net.isDown = true;
    await pass(leaseClock, 31);
    // The first to come back sees that the other's lease is over.
    for (const net of nets) {
      net.isDown = false;
      await pass(leaseClock, 8);
    }
    hold.open();
    await pass(leaseClock, 15);
    expect((await world.store.runs({ limit: 99 })).map(({ state }) => state)).toEqual(Array(40).fill("succeeded"));
    expect([begun.size, Math.max(...begun.values())]).toEqual([80, 1]);
    await pass(leaseClock, 30);
    expect((await world.store.workers()).map(({ name }) => name).toSorted()).toEqual(["one", "two"]);
    expect(said.filter((message) => message.includes("is dead"))).toEqual([]);
  });
});

describe("an answer that was lost", () => {
  const isStartOf = (request: Commit, key: string) =>
    request.runs.some(({ entries }) => entries.some((entry) => entry.type === "step.started" && entry.key === key));

  it("P17 drops a run that was not moved, even if its head is the end of the batch: its step begins elsewhere", async () => {
    const world = await openWorld("memory", { leaseClock: manualClock() });
    const begun: string[] = [];
    const flow = (where: string) => workflow("flow", async (ctx) => ctx.step("a", () => void begun.push(where)));
    let thief: Promise<Pawl> | null = null;
    const commit = async (request: Commit): Promise<Verdict[]> => {
      const verdicts = await world.store.commit(request);
      if (thief !== null || !isStartOf(request, "a")) return verdicts;
      await world.store.fence({ workers: [request.worker ?? ""] });
      thief = openOn(world.store, {}, [flow("there")]);
      await thief;
      throw new PawlError("unknown_outcome", "The answer was lost.");
    };
    const pawl = await openOn(world.store, { commit }, [flow("here")]);
    await pawl.start("flow", undefined, { id: "r" });
    await rounds();
    expect([begun, (await world.store.run("r"))?.state]).toEqual([["there"], "succeeded"]);
  });

  it("P17 is ignored when it comes after all: it was for an incarnation that is over", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const hold = gate();
    const { begun, workflows } = counted(hold);
    const [late, said] = [gate(), [] as string[]];
    let isHeld = false;
    const commit = async (request: Commit): Promise<Verdict[]> => {
      const verdicts = await world.store.commit(request);
      if (isHeld || !isStartOf(request, "a")) return verdicts;
      isHeld = true;
      await late.passed;
      return request.runs.map(({ run }) => ({ run, kind: "conflict", head: 0 }));
    };
    // A heartbeat says that the worker is fenced, so it takes over its own runs.
    const heartbeat = async (worker: string) =>
      isHeld ? { alive: false, others: 0 } : await world.store.heartbeat(worker);
    const logger = { ...silent, warn: (message: string) => void said.push(message) };
    const pawl = await openOn(world.store, { commit, heartbeat }, workflows, { logger });
    await pawl.start("flow", undefined, { id: "r" });
    await rounds();
    leaseClock.advance(5000);
    await rounds();
    expect(begun.get("r:a")).toBe(1);
    late.open();
    await rounds();
    hold.open();
    await rounds();
    expect((await world.store.run("r"))?.state).toBe("succeeded");
    expect(begun.get("r:a")).toBe(1);
    expect(said.filter((message) => message.includes("loaded again"))).toEqual([]);
  });
});
