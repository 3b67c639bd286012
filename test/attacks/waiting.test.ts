// Waiting for the store: what comes by polling when every hint is lost, and what must not happen before a commit is durable.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import type { Context } from "../../src/core/context.ts";
import type { Commit, Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { faultStore } from "../../src/testing/fault-store.ts";
import { gate, HOUR, openWorld, STORES_AT_ONCE } from "../behaviour/harness.ts";
import { noting, openOn, rounds, stateOf, tick } from "./rig.ts";

const noHints = { hints: () => () => {} };

function has(request: Commit, type: string): boolean {
  return request.runs.some(({ entries }) => entries.some((entry) => entry.type === type));
}

describe("with every hint lost", () => {
  async function openDeaf() {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    /** One poll interval: what happens by polling has happened then. */
    const poll = () => tick(leaseClock, 1);
    return { world, poll };
  }

  /** A parent, its child and whoever started them, in a process each. */
  async function openFamily() {
    const { world, poll } = await openDeaf();
    const child = workflow("child", async (ctx) => ctx.waitFor("go"));
    const parent = workflow("parent", async (ctx) => ctx.call(child));
    await openOn(world.store, noHints, [parent]);
    await openOn(world.store, noHints, [child]);
    const client = await openOn(world.store, noHints, []);
    const run = await client.start(parent);
    await poll();
    return { world, poll, client, run };
  }

  it("I12 B35 starts, children, signals, results and events come within one poll each", async () => {
    const { world, poll, client, run } = await openFamily();
    const [kid] = (await client.list({ parent: run.id })).runs;
    expect(kid?.id).toBeDefined();
    await poll();
    expect(await world.journal(kid?.id ?? "")).toContain("signal.awaited go");
    const result = run.result();
    const events = (async () => {
      for await (const _ of client.get(run.id).events());
    })();
    await client.signal(kid?.id ?? "", "go", 5);
    await poll();
    expect((await world.store.run(kid?.id ?? ""))?.state).toBe("succeeded");
    await poll();
    expect((await world.store.run(run.id))?.state).toBe("succeeded");
    await poll();
    expect(await stateOf(result)).toBe("resolved");
    expect(await stateOf(events)).toBe("resolved");
  });

  it("I12 I8 a result that is awaited where the run was lost comes from where it ends", async () => {
    const { world, poll } = await openDeaf();
    const never = gate();
    const moving = workflow("moving", async (ctx) =>
      ctx.step("a", async ({ attempt }) => (attempt === 1 ? never.passed : "done elsewhere")),
    );
    const first = await openOn(world.store, noHints, [moving]);
    const result = (await first.start(moving, undefined, { id: "r" })).result();
    await rounds();
    const [worker] = await world.store.workers();
    await openOn(world.store, noHints, [moving]);
    await world.store.fence({ workers: [worker?.id ?? ""] });
    // The other one polls, then the first one's heartbeat tells it that it was fenced.
    for (let seconds = 0; seconds < 8; seconds++) await poll();
    expect(await stateOf(result)).toBe("resolved");
    expect(await result).toBe("done elsewhere");
  });

  it("I12 a cancel of a run that waits, and of its child, comes within one poll each", async () => {
    const { world, poll, client, run } = await openFamily();
    await poll();
    const [kid] = (await client.list({ parent: run.id })).runs;
    const cancelled = run.cancel();
    await rounds();
    await poll();
    expect((await world.store.run(run.id))?.state).toBe("cancelled");
    await poll();
    expect((await world.store.run(kid?.id ?? ""))?.state).toBe("cancelled");
    expect(await stateOf(cancelled)).toBe("resolved");
  });

  it("I12 B36 a cancel from another process reaches a step that runs within one poll", async () => {
    const { world, poll } = await openDeaf();
    const held: { signal?: AbortSignal } = {};
    const hanging = workflow("hanging", async (ctx) =>
      ctx.step("a", ({ signal }) => {
        held.signal = signal;
        return new Promise<never>(() => {});
      }),
    );
    const worker = await openOn(world.store, noHints, [hanging]);
    const client = await openOn(world.store, noHints, []);
    await worker.start(hanging, undefined, { id: "r" });
    await rounds();
    const cancelled = client.cancel("r");
    await rounds();
    expect(held.signal?.aborted).toBe(false);
    await poll();
    expect(held.signal?.reason).toMatchObject({ code: "cancelled" });
    expect((await world.store.run("r"))?.state).toBe("cancelled");
    await poll();
    expect(await stateOf(cancelled)).toBe("resolved");
  });

  it("I12 a decision about a parked run comes within one poll", async () => {
    const { world, poll } = await openDeaf();
    const elsewhere = gate();
    let bodies = 0;
    const parking = workflow("parking", async (ctx) => {
      const isFirst = ++bodies === 1;
      const a = ctx.step("a", () => (isFirst ? new Promise<never>(() => {}) : "done"));
      // A foreign await beside a pending call parks the run.
      if (isFirst) await elsewhere.passed;
      return Promise.all([a, ctx.step("b", () => "done")]);
    });
    const worker = await openOn(world.store, noHints, [parking]);
    const client = await openOn(world.store, noHints, []);
    await worker.start(parking, undefined, { id: "r" });
    await rounds();
    elsewhere.open();
    await rounds();
    expect((await world.store.run("r"))?.state).toBe("parked");
    await client.resolve("r", "retry");
    await rounds();
    expect(bodies).toBe(1);
    await poll();
    expect((await world.store.run("r"))?.state).toBe("succeeded");
  });

  it("I12 a timer that another process has set fires here: at its time if it was polled for, else within one poll", async () => {
    const { world, poll } = await openDeaf();
    const sleeping = workflow("sleeping", async (ctx) => ctx.sleep("1 hour"));
    await openOn(world.store, noHints, [sleeping]);
    const other = await world.open([sleeping]);
    await other.start(sleeping, undefined, { id: "known" });
    await rounds();
    await poll();
    await other.start(sleeping, undefined, { id: "unknown", delay: "1 s" });
    world.clock.advance(1000);
    await rounds();
    world.kill(other);
    world.clock.advance(HOUR - 1000);
    await rounds();
    expect((await world.store.run("known"))?.state).toBe("succeeded");
    world.clock.advance(1000);
    await poll();
    expect((await world.store.run("unknown"))?.state).toBe("succeeded");
  });
});

describe.each(STORES_AT_ONCE)("before a commit is durable on %s", (kind) => {
  /** An engine whose commits that hold such an entry wait for the gate. */
  function heldBack(store: Store, type: string, until: Promise<unknown>): Partial<Store> {
    return {
      commit: async (request) => {
        if (has(request, type)) await until;
        return store.commit(request);
      },
    };
  }

  it("P13 nothing is logged of what it led to", async () => {
    const world = await openWorld(kind);
    const commit = gate();
    const lines: string[] = [];
    const logging = workflow("logging", async (ctx) => {
      ctx.log.info("before a");
      await ctx.step("a", () => 1);
      ctx.log.info("after a");
    });
    const overrides = heldBack(world.store, "step.completed", commit.passed);
    const pawl = await openOn(world.store, overrides, [logging], { logger: noting(lines) });
    const run = await pawl.start(logging);
    await rounds();
    expect(lines).toEqual(["before a"]);
    commit.open();
    await run.result();
    expect(lines).toEqual(["before a", "after a"]);
  });

  it("P13 P31 no child begins: what it does first finds its parent's call in the journal", async () => {
    const world = await openWorld(kind);
    const commit = gate();
    const seen: Promise<string[]>[] = [];
    const child = workflow("child", async () => void seen.push(world.journal("r")));
    const parent = workflow("parent", async (ctx) => ctx.call(child));
    const pawl = await openOn(world.store, heldBack(world.store, "child.started", commit.passed), [parent, child]);
    const run = await pawl.start(parent, undefined, { id: "r" });
    await rounds();
    expect(seen).toEqual([]);
    commit.open();
    await run.result();
    // A journal that is read from another process may show what came after it was asked for as well.
    const journals = await Promise.all(seen);
    expect(journals.map((lines) => lines.slice(0, 2))).toEqual([["run.started", "child.started child"]]);
  });

  it("P13 P19 no step is aborted by a cancel: once it is, the cancel can be read in the journal", async () => {
    const world = await openWorld(kind);
    const commit = gate();
    const seen: Promise<string[]>[] = [];
    const hanging = workflow("hanging", async (ctx) =>
      ctx.step("a", ({ signal }) => {
        signal.addEventListener("abort", () => seen.push(world.journal("r")));
        return new Promise<never>(() => {});
      }),
    );
    const pawl = await openOn(world.store, heldBack(world.store, "run.cancelling", commit.passed), [hanging]);
    await pawl.start(hanging, undefined, { id: "r" });
    await rounds();
    const cancelled = pawl.cancel("r");
    await rounds();
    expect(seen).toEqual([]);
    expect(await stateOf(cancelled)).toBe("pending");
    commit.open();
    await cancelled;
    expect(await Promise.all(seen)).toEqual([expect.arrayContaining(["run.cancelling"])]);
  });

  it("I2 closing tells every start that the store has not answered", async () => {
    const world = await openWorld(kind);
    const any = workflow("any", async () => 1);
    const pawl = await openOn(world.store, { commit: () => new Promise(() => {}) }, [any]);
    const start = pawl.start(any);
    const keyed = pawl.start(any, undefined, { key: "k" });
    const settled = Promise.allSettled([start, keyed]);
    await rounds(10);
    await pawl.close({ drain: 5 });
    expect(await settled).toMatchObject([
      { status: "rejected", reason: { code: "unknown_outcome" } },
      { status: "rejected", reason: { code: "unknown_outcome" } },
    ]);
  });
});

it.each(STORES_AT_ONCE)(
  "P13 P19 ctx.signal fires at a place in the journal, live and in replay, on %s",
  async (kind) => {
    const world = await openWorld(kind);
    const hold = gate();
    const lives: string[][] = [];
    const watching = workflow("watching", async (ctx) => {
      const seen: string[] = [];
      lives.push(seen);
      ctx.signal.addEventListener("abort", () => seen.push("abort"));
      await ctx.step("a", () => 1);
      seen.push(`after a: ${ctx.signal.aborted}`);
      await ctx.waitFor("go").catch(() => seen.push(`after go: ${ctx.signal.aborted}`));
      await hold.passed;
    });
    const first = await world.open([watching]);
    await first.start(watching, undefined, { id: "r" });
    await world.settle();
    // The run is loaded with the cancel in hand, and must not know of it before its place.
    await first.cancel("r");
    await world.settle();
    const pawl = await world.restart([watching]);
    await world.settle();
    const told = ["after a: false", "abort", "after go: true"];
    expect(lives).toEqual([["after a: false"], told, told]);
    hold.open();
    await pawl.idle();
    expect((await pawl.get("r").status()).status).toBe("cancelled");
  },
);

it.each([1, 2, 5])("P13 a run of %s steps costs one commit for each, and one for its end", async (steps) => {
  const world = await openWorld("memory");
  const sequence = workflow("sequence", async (ctx) => {
    for (let n = 0; n < steps; n++) await ctx.step("s", () => rounds(2));
  });
  const store = faultStore(world.store, {});
  const pawl = await openOn(store, {}, [sequence]);
  await pawl.run(sequence);
  expect(store.commits).toHaveLength(steps + 1);
  // With an id or a key, its start has to be known first.
  await pawl.run(sequence, undefined, { id: "r" });
  expect(store.commits).toHaveLength(steps + 1 + steps + 2);
});

describe("a loop of steps that are over at once", () => {
  it.each([
    ["a timer", (ctx: Context) => ctx.sleep(20)],
    ["a signal", (ctx: Context) => ctx.waitFor("halt")],
    ["the timeout of a wait", (ctx: Context) => ctx.waitFor("halt", { timeout: 20, default: null })],
  ])("I12 does not keep %s from the run", async (what, wait) => {
    const world = await openWorld("memory");
    let steps = 0;
    const looping = workflow("looping", async (ctx) => {
      let isOver = false;
      void wait(ctx).then(() => {
        isOver = true;
      });
      while (!isOver && steps < 1000) {
        await ctx.step("x", () => {
          steps++;
          if (what === "a signal" && steps === 20) void pawl.signal("r", "halt");
          else world.clock.advance(1);
        });
      }
    });
    const pawl = await openOn(world.store, {}, [looping]);
    await (await pawl.start(looping, undefined, { id: "r" })).result();
    expect(steps).toBeGreaterThanOrEqual(20);
    expect(steps).toBeLessThan(40);
  });
});

it("P13 P12 a line that is logged while the end is being written appears with it, and nothing else is written", async () => {
  const world = await openWorld("memory");
  const [end, said] = [gate(), gate()];
  const lines: string[] = [];
  const commits: string[][] = [];
  const racing = workflow("racing", async (ctx) =>
    Promise.race([
      ctx.step("slow", async () => {
        await said.passed;
        ctx.log.info("late");
      }),
      ctx.step("fast", () => "done"),
    ]),
  );
  const pawl = await openOn(
    world.store,
    {
      commit: async (request) => {
        commits.push(request.runs.flatMap(({ entries }) => entries.map(({ type }) => type)));
        if (commits.at(-1)?.includes("run.succeeded")) {
          said.open();
          await end.passed;
        }
        return world.store.commit(request);
      },
    },
    [racing],
    { logger: noting(lines) },
  );
  const run = await pawl.start(racing);
  await rounds();
  end.open();
  expect(await run.result()).toBe("done");
  await rounds();
  expect(commits.at(-1)).toContain("run.succeeded");
  expect(lines.filter((line) => line.includes("late"))).toHaveLength(1);
  expect(lines.filter((line) => line.includes("loaded again"))).toEqual([]);
});

it("P17 I27 a worker that was fenced does not ask again and again for a sleeper that is due", async () => {
  const world = await openWorld("memory", { leaseClock: manualClock() });
  const sleeping = workflow("sleeping", async (ctx) => ctx.sleep(HOUR));
  let claims = 0;
  const pawl = await openOn(
    world.store,
    {
      claim: async (request) => {
        claims++;
        return world.store.claim(request);
      },
    },
    [sleeping],
  );
  await pawl.start(sleeping);
  await rounds();
  const [worker] = await world.store.workers();
  await world.store.fence({ workers: [worker?.id ?? ""] });
  claims = 0;
  world.clock.advance(HOUR);
  for (let round = 0; round < 50; round++) {
    await rounds(20);
    world.clock.advance(0);
  }
  expect(claims).toBeGreaterThan(0);
  expect(claims).toBeLessThan(5);
});
