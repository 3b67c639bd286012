// A store that is away for a while, or fails once at any point: runs wait, go on by themselves when it is back, and none is lost.
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type ManualClock, manualClock } from "../../src/base/clock.ts";
import { Pawl } from "../../src/client/pawl.ts";
import type { Context } from "../../src/core/context.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { loadDriver } from "../../src/stores/sqlite/driver.ts";
import { sqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { errorOf, gate, openWorld } from "../behaviour/harness.ts";
import { away, lost, noting, openOn, rounds, silent, stateOf, tick } from "./rig.ts";

const LEASE = 15;

/** All that an engine asks of a store while it works. */
const METHODS = [
  ...(["register", "heartbeat", "workers", "fence", "retire", "claim", "nextWake", "take", "owned", "commit"] as const),
  ...(["deliver", "run", "runs", "journal", "inbox", "waits", "orphans", "adopt", "purge"] as const),
];

/** A line to the store that can be cut: every method fails then, and notes when it was tried. */
function cuttable(store: Store) {
  const line = { error: null as (() => Error) | null, tries: [] as { method: string; at: number }[] };
  const overrides = {};
  for (const method of METHODS) {
    const real = store[method] as (...args: unknown[]) => Promise<unknown>;
    Object.assign(overrides, {
      [method]: async (...args: unknown[]) => {
        if (line.error === null) return real(...args);
        line.tries.push({ method, at: store.leaseClock.monotonic() });
        throw line.error();
      },
    });
  }
  return { line, overrides: overrides as Partial<Store> };
}

async function moveBy(clock: ManualClock, ms: number, stepMs: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    clock.advance(stepMs);
    await rounds(10);
  }
}

describe("an outage", () => {
  it("B70 I19 of 30 s with 1,000 runs: none fails or is parked, no step begins twice, new starts are told", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const hold = gate();
    let begun = 0;
    const working = workflow("working", async (ctx) => {
      await ctx.step("a", () => {
        begun++;
        return hold.passed;
      });
      await ctx.step("b", () => begun++);
    });
    const { line, overrides } = cuttable(world.store);
    const pawl = await openOn(world.store, overrides, [working]);
    const runs = await Promise.all(Array.from({ length: 1000 }, () => pawl.start(working)));
    await rounds();
    expect(begun).toBe(1000);
    line.error = away;
    hold.open();
    await rounds();
    const refused = errorOf(pawl.start(working));
    await moveBy(leaseClock, 30_000, 100);
    expect(await refused).toMatchObject({ code: "storage_unavailable" });
    line.error = null;
    await tick(leaseClock, 2);
    const states = await Promise.all(runs.map(async ({ id }) => (await world.store.run(id))?.state));
    expect(new Set(states)).toEqual(new Set(["succeeded"]));
    expect(begun).toBe(2000);
    expect(await world.store.runs({ limit: 2000 })).toHaveLength(1000);
  });

  it("P17 I2 of one commit that throws instead of answering is an unknown outcome like any other", async () => {
    const world = await openWorld("memory");
    const begun: string[] = [];
    const two = workflow("two", async (ctx) => {
      for (const name of ["a", "b"]) await ctx.step(name, () => void begun.push(name));
      return "done";
    });
    let commits = 0;
    const commit: Store["commit"] = (request) => {
      if (++commits === 2) throw new Error("at once");
      return world.store.commit(request);
    };
    const pawl = await openOn(world.store, { commit }, [two]);
    expect(await pawl.run(two, undefined)).toBe("done");
    expect(begun).toEqual(["a", "b"]);
  });

  it("I19 B70 is met with a bounded number of tries, and two workers do not come back in step", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const hold = gate();
    const workers = await Promise.all(
      ["one", "two"].map(async (name) => {
        const working = workflow(name, async (ctx) => ctx.step("a", () => hold.passed));
        const { line, overrides } = cuttable(world.store);
        const pawl = await openOn(world.store, overrides, [working]);
        for (let n = 0; n < 100; n++) await pawl.start(working);
        return line;
      }),
    );
    for (const line of workers) line.error = away;
    hold.open();
    await moveBy(leaseClock, 30_000, 10);
    const times = workers.map(({ tries }) => tries.filter(({ method }) => method === "commit").map(({ at }) => at));
    // The wait grows to a second at most, half of it on average: whatever the number of runs, not many more than two tries a second.
    for (const list of times) {
      expect(list.length).toBeGreaterThan(30);
      expect(list.length).toBeLessThan(120);
    }
    const [one = [], two = []] = times;
    const inStep = one.filter((at) => two.includes(at)).length;
    expect(inStep).toBeLessThan(one.length / 2);
    for (const { tries } of workers) expect(tries.length).toBeLessThan(300);
    for (const line of workers) line.error = null;
    await tick(leaseClock, 2);
    const unfinished = (await world.store.runs({ limit: 300 })).filter(({ state }) => state !== "succeeded");
    expect(unfinished).toEqual([]);
  });

  it.each([
    [
      "B19 P25 of two workers, refused for two leases: both go on with what they had, and neither fences the other",
      away,
    ],
    [
      "B19 P17 P25 of two workers, answers lost for two leases: both go on with what they had, and neither fences the other",
      lost,
    ],
  ])("%s", async (_title, error) => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const lines: string[] = [];
    const hold = gate();
    const begun: string[] = [];
    const cut: ReturnType<typeof cuttable>["line"][] = [];
    for (const name of ["one", "two"]) {
      const working = workflow(name, async (ctx) => {
        for (const step of ["a", "b"])
          await ctx.step(step, ({ attempt }) => {
            begun.push(`${name} ${step} ${attempt}`);
            return hold.passed;
          });
      });
      const { line, overrides } = cuttable(world.store);
      cut.push(line);
      const pawl = await openOn(world.store, overrides, [working], { logger: noting(lines) });
      await pawl.start(working, undefined, { id: name });
    }
    await tick(leaseClock, 2 * LEASE);
    for (const line of cut) line.error = error;
    hold.open();
    await tick(leaseClock, 2 * LEASE);
    // One of them is back before the other, and finds the other's lease long over.
    for (const line of cut) {
      line.error = null;
      await tick(leaseClock, LEASE / 2);
    }
    for (const name of ["one", "two"]) expect((await world.store.run(name))?.state).toBe("succeeded");
    expect(begun.toSorted()).toEqual(["one a 1", "one b 1", "two a 1", "two b 1"]);
    expect(await world.store.workers()).toHaveLength(2);
    // For two leases more, nobody is taken for dead.
    await tick(leaseClock, 2 * LEASE);
    expect(await world.store.workers()).toHaveLength(2);
    expect(lines.filter((line) => line.includes("is dead"))).toEqual([]);
  });

  const due: [string, (ctx: Context) => Promise<unknown>, number][] = [
    [
      "B41 from before a sleep is over until after it: it wakes within a second of the end",
      (ctx) => ctx.sleep("60 s"),
      58,
    ],
    ["B41 over the end of a nap in memory: it wakes within a second of the end", (ctx) => ctx.sleep(900), 0],
    [
      "B41 while a step is to be tried again: it is, within a second of the end",
      (ctx) =>
        ctx.step(
          "a",
          ({ attempt }) => {
            if (attempt === 1) throw new Error("not yet");
          },
          { retry: { max: 1, base: 900, jitter: false, on: "any" } },
        ),
      0,
    ],
  ];
  it.each(due)("%s", async (_title, wait, secondsBefore) => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const both = async (n: number) => {
      for (let i = 0; i < 4 * n; i++) {
        world.clock.advance(250);
        leaseClock.advance(250);
        await rounds(60);
      }
    };
    const waiting = workflow("waiting", wait);
    const { line, overrides } = cuttable(world.store);
    const pawl = await openOn(world.store, overrides, [waiting]);
    await pawl.start(waiting, undefined, { id: "r" });
    await rounds();
    await both(secondsBefore);
    line.error = away;
    await both(10);
    expect((await world.store.run("r"))?.endedAt).toBeNull();
    line.error = null;
    await both(1);
    expect((await world.store.run("r"))?.state).toBe("succeeded");
  });
});

describe("a store that fails once during recovery", () => {
  const RUNS = ["r1", "r2", "r3", "r4", "r5"];
  const GONE = 4_194_305;

  /** A file as a process has left it that died with five runs in their second step. */
  async function leaveWreck(folder: string): Promise<string> {
    const wreck = join(folder, "wreck.db");
    const hold = gate();
    const store = sqliteStore(join(folder, "live.db"), { leaseClock: manualClock(), durability: "process" });
    const working = twoSteps(() => hold.passed);
    const pawl = await Pawl.open(store, { workflows: [working], logger: silent, handleSignals: false });
    for (const id of RUNS) await pawl.start(working, undefined, { id });
    await rounds();
    for (const suffix of ["", "-wal"]) copyFileSync(join(folder, `live.db${suffix}`), wreck + suffix);
    hold.open();
    await pawl.close();
    const db = loadDriver().open(wreck);
    db.exec(`update workers set pid = ${GONE}; pragma wal_checkpoint(truncate)`);
    db.close();
    return wreck;
  }

  const twoSteps = (b: () => Promise<void>, begun: string[] = []) =>
    workflow("two", async (ctx) => {
      await ctx.step("a", () => begun.push(`${ctx.run.id} a`));
      await ctx.step("b", () => {
        begun.push(`${ctx.run.id} b`);
        return b();
      });
    });

  it("B1 I10 at every point of it in turn: every run ends, and what was recorded is not run again", async () => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-outage-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const wreck = await leaveWreck(folder);
    let n = 1;
    for (let wasReached = true; wasReached; n++) {
      const file = join(folder, `${n}.db`);
      copyFileSync(wreck, file);
      const begun: string[] = [];
      const leaseClock = manualClock();
      let reached = Number.NEGATIVE_INFINITY;
      const fault = () => {
        if (++reached === n)
          throw Object.assign(new Error("disk I/O error"), { code: "ERR_SQLITE_ERROR", errcode: 10 });
      };
      const store = sqliteStore(file, { leaseClock, durability: "process", fault });
      const own: Store = {
        ...store,
        pulse: undefined as never,
        register: async (worker) => {
          await store.register(worker);
          reached = 0;
        },
      };
      const workflows = [twoSteps(async () => {}, begun)];
      const pawl = await Pawl.open(own, { workflows, logger: silent, handleSignals: false });
      const isOver = async () =>
        (await Promise.all(RUNS.map((id) => store.run(id)))).every((row) => row?.endedAt !== null);
      // A store's own pauses are real time: some seconds of the clock pass while nothing can.
      for (let seconds = 0; seconds < 200 && !(await isOver()); seconds++) await tick(leaseClock, 1);
      wasReached = reached >= n;
      for (const id of RUNS) expect((await store.run(id))?.state, `${id}, failed at point ${n}`).toBe("succeeded");
      expect(begun.toSorted(), `failed at point ${n}`).toEqual(RUNS.map((id) => `${id} b`));
      expect(await store.orphans()).toEqual([]);
      // The last commit may be one whose outcome it does not know yet: its next look is due when the clock says so.
      const closed = pawl.close();
      while ((await stateOf(closed)) === "pending") await tick(leaseClock, 1);
    }
    // Registering, fencing, claiming and the commits of five runs, each with several statements.
    expect(n).toBeGreaterThan(30);
  });
});

describe("a store that fails while a failure is being recorded", () => {
  const failing = ["step.failed", "run.failed"];
  const ways: Readonly<Record<string, { applies: boolean; error: () => Error }>> = {
    "does nothing": { applies: false, error: away },
    "does it and does not answer": { applies: true, error: lost },
    "does nothing and does not answer": { applies: false, error: lost },
  };

  for (const type of failing) {
    for (const [title, { applies, error }] of Object.entries(ways)) {
      it(`B17 I2 I6 of ${type}, and ${title}: the run ends with the first error, and its step was begun once`, async () => {
        const leaseClock = manualClock();
        const world = await openWorld("memory", { leaseClock });
        let begun = 0;
        let hasFailed = false;
        const breaking = workflow({ name: "breaking", retry: false }, async (ctx) =>
          ctx.step("a", () => {
            begun++;
            throw new Error("the first error");
          }),
        );
        const pawl = await openOn(
          world.store,
          {
            commit: async (request) => {
              const isIt = request.runs.some(({ entries }) => entries.some((entry) => entry.type === type));
              if (!isIt || hasFailed) return world.store.commit(request);
              hasFailed = true;
              if (applies) await world.store.commit(request);
              throw error();
            },
          },
          [breaking],
        );
        const run = await pawl.start(breaking, undefined, { id: "r" });
        const end = errorOf(run.result());
        await tick(leaseClock, 20);
        expect(hasFailed).toBe(true);
        expect((await end)["message"]).toBe("the first error");
        expect(begun).toBe(1);
        expect((await world.journal("r")).filter((line) => line.startsWith("run.failed"))).toHaveLength(1);
        expect(await world.store.orphans()).toEqual([]);
      });
    }
  }
});
