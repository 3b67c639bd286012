// The start gate: between the commit that allows a step and the step's function, a process may stand still for as long as it likes.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import type { Commit, Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, openWorld, STORES_AT_ONCE, type StoreKind } from "../behaviour/harness.ts";
import { openOn, rounds } from "./rig.ts";

const LEASE = 15_000;

/** A world, and the store as a process sees it that stands still: its clock goes on, but none of its timers has fired yet. */
async function frozenWorld(kind: StoreKind) {
  const leaseClock = manualClock();
  const world = await openWorld(kind, { leaseClock });
  let stoodStillMs = 0;
  const overrides: Partial<Store> = {
    leaseClock: { ...leaseClock, monotonic: () => leaseClock.monotonic() + stoodStillMs },
    // Its timers and its thread stand still as well.
    pulse: undefined as never,
  };
  const standStill = (ms: number) => {
    stoodStillMs += ms;
  };
  return { world, leaseClock, overrides, standStill };
}

function starts(request: Commit, key: string): boolean {
  return request.runs.some(({ entries }) => entries.some((one) => one.type === "step.started" && one.key === key));
}

describe.each(STORES_AT_ONCE)("the start gate on %s", (kind) => {
  it.each([
    [
      "P37 a worker that stood still for its lease takes a new incarnation before the step begins",
      LEASE,
      ["fenced", "a"],
    ],
    ["P37 a step begins at once while the lease runs, be it for a millisecond more", LEASE - 1, ["a"]],
  ])("%s", async (_title, stillMs, expected) => {
    const { world, overrides, standStill } = await frozenWorld(kind);
    const happened: string[] = [];
    const stepping = workflow("stepping", async (ctx) => ctx.step("a", () => happened.push("a")));
    const pawl = await openOn(
      world.store,
      {
        ...overrides,
        commit: async (request) => {
          const verdicts = await world.store.commit(request);
          if (starts(request, "a")) standStill(stillMs);
          return verdicts;
        },
        fence: async (request) => {
          happened.push("fenced");
          return world.store.fence(request);
        },
      },
      [stepping],
    );
    await pawl.run(stepping);
    expect(happened).toEqual(expected);
  });

  it("P37 I6 a step that another worker has finished meanwhile never begins on the one that stood still", async () => {
    const { world, overrides, standStill } = await frozenWorld(kind);
    const begun: string[] = [];
    const on = (worker: string) =>
      workflow("stepping", async (ctx) =>
        ctx.step("a", ({ attempt }) => {
          begun.push(`${worker} ${attempt}`);
          return worker;
        }),
      );
    const other = { takesOver: async () => {} };
    const frozen = await openOn(
      world.store,
      {
        ...overrides,
        commit: async (request) => {
          const verdicts = await world.store.commit(request);
          if (starts(request, "a")) {
            standStill(LEASE);
            await other.takesOver();
          }
          return verdicts;
        },
      },
      [on("frozen")],
    );
    const [{ id } = { id: "" }] = await world.store.workers();
    other.takesOver = async () => {
      await world.store.fence({ workers: [id] });
      const pawl = await openOn(world.store, {}, [on("other")]);
      await pawl.get("r").result();
    };
    await frozen.start("stepping", undefined, { id: "r", version: "1.0.0" });
    await rounds();
    expect(begun).toEqual(["other 2"]);
    expect(await world.journal("r")).toEqual([
      "run.started",
      "step.started a",
      "step.started a",
      "step.completed a",
      "run.succeeded",
    ]);
  });

  it("P37 counts the lease from when the last confirmed heartbeat was sent, not from when it was answered", async () => {
    const { world, leaseClock, overrides } = await frozenWorld(kind);
    const answer = gate();
    let fences = 0;
    const stepping = workflow("stepping", async (ctx) => ctx.step("a", () => "done"));
    const pawl = await openOn(
      world.store,
      {
        ...overrides,
        heartbeat: async (worker) => {
          const reply = await world.store.heartbeat(worker);
          await answer.passed;
          return reply;
        },
        fence: async (request) => {
          if (request.successor !== undefined) fences++;
          return world.store.fence(request);
        },
      },
      [stepping],
    );
    // Sent after a third of the lease, it is answered after the lease that it renews.
    leaseClock.advance(LEASE / 3);
    await rounds();
    leaseClock.advance((2 * LEASE) / 3 + 1000);
    answer.open();
    await rounds();
    leaseClock.advance(LEASE / 3 - 1001);
    expect(await pawl.run(stepping)).toBe("done");
    expect(fences).toBe(0);
    // A lease has passed since the last one was sent, and the next is not out yet.
    leaseClock.advance(1);
    expect(await pawl.run(stepping)).toBe("done");
    expect(fences).toBe(1);
  });
});

it("P37 I9 an undo that had to wait for its action passes the gate again: the lease may have run out meanwhile", async () => {
  const { world, overrides, standStill } = await frozenWorld("memory");
  const happened: string[] = [];
  const bank = gate();
  const paying = workflow("paying", async (ctx) => {
    const pay = { idempotent: true, do: () => bank.passed, undo: () => void happened.push("undone") };
    const ship = () => {
      throw new Error("out of stock");
    };
    await Promise.all([ctx.effect("pay", pay), ctx.step("ship", ship)]);
  });
  const fence: Store["fence"] = async (request) => {
    happened.push("fenced");
    return world.store.fence(request);
  };
  const pawl = await openOn(world.store, { ...overrides, fence }, [paying]);
  const run = await pawl.start(paying, undefined, { id: "r" });
  await rounds();
  expect(await world.journal("r")).toContain("step.started pay/undo");
  standStill(LEASE);
  bank.open();
  expect((await errorOf(run.result())).message).toBe("out of stock");
  expect(happened).toEqual(["fenced", "undone"]);
});
