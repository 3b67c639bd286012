// Runs that are to begin later, and what may happen to them before they do.
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Run } from "../../src/client/run.ts";
import type { Context } from "../../src/core/context.ts";
import type { Continued } from "../../src/core/journal.ts";
import type { RunRow, Store } from "../../src/core/store.ts";
import { type Workflow, type WorkflowOptions, workflow } from "../../src/core/workflow.ts";
import { rounds } from "../attacks/rig.ts";
import { gate, HOUR, MINUTE, nextRound, openWorld, STORES, type StoreKind, type World } from "./harness.ts";

const GRACE = MINUTE;

/** Notes when each body has begun, with the version of its code. */
function noting(world: World, more: (ctx: Context) => Promise<unknown> = async () => {}) {
  const begun: string[] = [];
  const epoch = world.clock.now();
  const make = (version: string, options: Partial<WorkflowOptions<string>> = {}) =>
    workflow<string, string>({ name: "w", version, ...options }, async (ctx, input) => {
      await ctx.step("s", () => void begun.push(`${version} ${input} at ${(world.clock.now() - epoch) / HOUR}h`));
      await more(ctx);
      return input;
    });
  return { begun, make };
}

type Job = Workflow<string, string>;

/** A run that is to begin in three hours, and whose version no worker has for longer than the grace time. */
async function stranded(
  store: StoreKind,
  more: Partial<WorkflowOptions<string>> = {},
  begin = (pawl: Pawl, job: Job) => pawl.start(job, "x", { id: "r", delay: "3 hours" }),
) {
  const lease = manualClock();
  const world = await openWorld(store, { leaseClock: lease });
  const { begun, make } = noting(world);
  const old = make("1.0.0");
  const deploy = (code: ReturnType<typeof make>) => world.restart([code], { versionGrace: GRACE });
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 5000) {
      lease.advance(Math.min(left, 5000));
      await world.settle();
    }
  };
  const { id } = await begin(await deploy(old), old);
  await world.advance(HOUR);
  const pawl = await deploy(make("2.0.0", more));
  await pass(3 * GRACE);
  expect((await pawl.get(id).status()).parked?.reason).toBe("version_mismatch");
  return { world, begun, pawl, id, old, back: () => deploy(old), pass };
}

describe.each(STORES)("delayed starts on %s", (store) => {
  it("I13 one that was parked for its version begins when its time has come, not when that is back", async () => {
    const { world, begun, back, pass } = await stranded(store);
    const pawl = await back();
    await pass(10_000);
    expect([begun, await pawl.get("r").status()]).toMatchObject([[], { state: "accepted", waits: [] }]);
    // What is said to it before then does not wake it.
    await pawl.signal("r", "go");
    await world.advance(2 * HOUR - 1);
    expect(begun).toEqual([]);
    await world.advance(1);
    expect(begun).toEqual(["1.0.0 x at 3h"]);
    expect(await pawl.get("r").result()).toBe("x");
  });

  it("I13 C-10 one that is migrated before its time begins when that has come", async () => {
    const migrate = () => ({ input: "migrated" });
    const { world, begun, pawl } = await stranded(store, { migrations: [{ from: "1.0", to: "2.0.0", migrate }] });
    await pawl.resolve("r", "migrate");
    await world.advance(2 * HOUR - 1);
    expect([begun, await pawl.get("r").status()]).toMatchObject([[], { state: "accepted", version: "2.0.0" }]);
    await world.advance(1);
    expect(begun).toEqual(["2.0.0 migrated at 3h"]);
  });

  it("I13 S0-42 one that is started afresh before its time begins when that has come", async () => {
    const { world, begun, pawl } = await stranded(store);
    await pawl.resolve("r", "fresh");
    await world.advance(2 * HOUR - 1);
    expect([begun, (await pawl.get("r").status()).state]).toEqual([[], "cancelled"]);
    await world.advance(1);
    expect(begun).toEqual(["2.0.0 x at 3h"]);
  });

  it("I13 P19 one that is cancelled before its time does not begin for it, whatever has been recorded of it", async () => {
    const { world, begun, back, pass } = await stranded(store);
    const pawl = await back();
    await pass(10_000);
    const fork = await pawl.fork("r", { at: 1 });
    await world.settle();
    await Promise.all([pawl.cancel("r"), pawl.cancel(fork.id)]);
    expect(begun).toEqual([]);
    const end = ["run.cancelling", "run.cancelled"];
    expect(await world.journal("r")).toEqual(["run.started", "run.parked", "run.resolved", ...end]);
    expect(await world.journal(fork.id)).toEqual(["run.started", "run.forked", ...end]);
  });

  it("I13 X-21 a burst whose process dies between taking its run and writing the next input is one run all the same", async () => {
    const { world, begun, first, start, id } = await burst(store);
    await world.advance(HOUR / 2);
    await start(first, "b");
    await dyingOnTake(world, start, "c");
    expect((await world.store.run(id))?.owner).not.toBeNull();
    await world.fence();
    await world.advance(0.75 * HOUR);
    expect(begun).toEqual([]);
    // Whoever was not answered says it again.
    expect((await start(first, "c")).id).toBe(id);
    await world.advance(2 * HOUR);
    expect(begun).toEqual(["1.0.0 c at 2.25h"]);
  });

  it("I13 X-21 a burst goes on with a run that this worker claims too early at that very moment", async () => {
    const { world, begun, first, start, id } = await burst(store);
    await dyingOnTake(world, start, "b");
    claimedBeforeTaken(world, first, id);
    await world.fence();
    expect((await start(first, "b")).id).toBe(id);
    await world.advance(HOUR - 1);
    expect(begun).toEqual([]);
    await world.advance(1);
    expect(begun).toEqual(["1.0.0 b at 1h"]);
  });

  it("I17 X-21 a burst goes on with a run that another worker has claimed too early, and is about to put off again", async () => {
    const { world, first, start, id } = await burst(store);
    const { store: shared } = world;
    const look: Store["run"] = shared.run.bind(shared);
    shared.run = async (run) => {
      const row = await look(run);
      shared.run = look;
      return row === null ? null : { ...row, state: "running", owner: "another" };
    };
    expect((await start(first, "b")).id).toBe(id);
  });

  it("I18 X-21 one that was claimed too early counts for its rate when it begins", async () => {
    const rate = { limit: 1, per: "30m" } as const;
    const { world, begun, first, start, job } = await burst(store, undefined, { rate });
    await dyingOnTake(world, start, "b");
    await world.fence();
    await world.settle();
    await first.start(job, "other", { delay: "1h" });
    await world.advance(2 * HOUR);
    expect(begun).toEqual(["1.0.0 a at 1h", "1.0.0 other at 1.5h"]);
  });

  it("P10 X-21 a burst whose run was parked and taken up again goes on with the next generation", async () => {
    const start = (pawl: Pawl, job: Job, input: string) =>
      pawl.start(job, input, { debounce: { key: "k", wait: "3 hours" } });
    const both = async (pawl: Pawl, job: Job) => {
      await start(pawl, job, "a");
      return start(pawl, job, "b");
    };
    const { world, begun, id, old, back, pass } = await stranded(store, {}, both);
    const pawl = await back();
    await pass(10_000);
    expect((await start(pawl, old, "c")).id).toBe(id);
    const generations = (await pawl.get(id).journal()).flatMap(({ type, payload }) =>
      type === "run.continued" ? [(payload as Continued).generation] : [],
    );
    expect(generations).toEqual([1, 2]);
    await world.advance(3 * HOUR);
    expect(begun).toEqual(["1.0.0 c at 4h"]);
  });

  it("P19 X-21 one that is cancelled while a further start is being written to it ends at once, and the start is another run", async () => {
    const { world, begun, first, start, id } = await burst(store);
    const { store: shared } = world;
    const commit: Store["commit"] = shared.commit.bind(shared);
    shared.commit = async (request) => {
      if (request.runs.some(({ run, entries }) => run === id && entries.length > 0)) {
        shared.commit = commit;
        await shared.deliver({ to: id, id: "c", kind: "cancel", name: "", data: null });
      }
      return commit(request);
    };
    const second = await start(first, "b");
    await world.settle();
    expect([second.id === id, (await shared.run(id))?.state]).toEqual([false, "cancelled"]);
    await world.advance(HOUR);
    expect(begun).toEqual(["1.0.0 b at 1h"]);
  });

  it.each([
    ["at work", (ctx: Context) => ctx.step("work", ({ signal }) => once(signal, "abort"))],
    ["waiting", (ctx: Context) => ctx.waitFor("go")],
  ])(
    "I6 X-21 a run that has begun and is %s by the time a further start has looked at it is left alone",
    async (_, more) => {
      const { world, begun, first, start, id } = await burst(store, more);
      const { store: shared } = world;
      const look: Store["run"] = shared.run.bind(shared);
      let before: RunRow | null = null;
      shared.run = async (run) => {
        const row = await look(run);
        shared.run = look;
        world.clock.advance(HOUR);
        while (begun.length === 0) await nextRound();
        await rounds();
        before = await look(run);
        return row;
      };
      expect((await start(first, "b")).id).not.toBe(id);
      await world.settle();
      // Nobody else was let in meanwhile.
      expect(await look(id)).toEqual(before);
      expect(begun).toEqual(["1.0.0 a at 1h", "1.0.0 b at 1h"]);
    },
  );
});

type Starting = (pawl: Pawl, input: string) => Promise<Run<string>>;

/** A debounced run that is to begin in an hour. */
async function burst(
  store: StoreKind,
  more?: (ctx: Context) => Promise<unknown>,
  options?: Partial<WorkflowOptions<string>>,
) {
  const world = await openWorld(store);
  const { begun, make } = noting(world, more);
  const job = make("1.0.0", options);
  const start: Starting = (pawl, input) => pawl.start(job, input, { debounce: { key: "k", wait: "1h" } });
  const first = await world.open([job]);
  const { id } = await start(first, "a");
  return { world, begun, first, start, id, job };
}

/** Has a process of its own start this, and die as soon as the store has given it the run by `take`. */
async function dyingOnTake(world: World, start: Starting, input: string): Promise<void> {
  const lost = await world.open();
  const { store } = world;
  const take: Store["take"] = store.take.bind(store);
  store.take = async (...args) => {
    const taken = await take(...args);
    store.take = take;
    world.kill(lost);
    return taken;
  };
  void start(lost, input);
  await world.settle();
}

/** Has the store hand the run to a claim of this engine between a look at it and its being taken, and answer the claim last. */
function claimedBeforeTaken({ store }: World, pawl: Pawl, id: string): void {
  const look: Store["run"] = store.run.bind(store);
  const claim: Store["claim"] = store.claim.bind(store);
  const take: Store["take"] = store.take.bind(store);
  const [seen, claimed, taken] = [gate(), gate(), gate()];
  store.run = async (run) => {
    const row = await look(run);
    store.run = look;
    seen.open();
    void pawl.idle();
    await claimed.passed;
    return row;
  };
  store.claim = async (request) => {
    await seen.passed;
    const runs = await claim(request);
    if (!runs.some(({ run }) => run === id)) return runs;
    store.claim = claim;
    claimed.open();
    await taken.passed;
    return runs;
  };
  store.take = async (...args) => {
    const run = await take(...args);
    store.take = take;
    taken.open();
    return run;
  };
}
