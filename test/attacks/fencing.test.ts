import { describe, expect, it } from "vitest";
import { type Clock, manualClock } from "../../src/base/clock.ts";
import { PawlError } from "../../src/base/errors.ts";
import type { ClaimRequest, Commit, FenceRequest, NewWorker, Pulse, Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { faultStore } from "../../src/testing/fault-store.ts";
import { gate, openWorld } from "../behaviour/harness.ts";
import { openOn, rounds, silent, stateOf } from "./rig.ts";

const lost = () => new PawlError("unknown_outcome", "The answer was lost.");

/** The clock of a process that can stand still: time goes on then, but nothing fires. */
function stallingClock(clock: Clock): Clock & { stand(ms: number): void } {
  let stoodMs = 0;
  const stand = (ms: number) => {
    stoodMs += ms;
  };
  return { ...clock, monotonic: () => clock.monotonic() + stoodMs, stand };
}

/** A worker of this machine of which only its lease tells whether it is alive. */
async function otherWorker(store: Store): Promise<NewWorker> {
  const boot = (await store.workers())[0]?.process.boot ?? "";
  const identity = { pid: process.pid, startedAt: null, boot, pidNamespace: null };
  return { id: "other", name: "other", leaseMs: 15_000, process: identity, handles: [] };
}

describe("fencing oneself", () => {
  it("I2 a start whose answer was lost is not reported as failed: the run ended in the same commit", async () => {
    const world = await openWorld("memory");
    const instant = workflow("instant", async () => "done");
    const pawl = await openOn(faultStore(world.store, { commits: { 1: "lose-answer" } }), {}, [instant]);
    const run = await pawl.start(instant);
    expect(await run.result()).toBe("done");
    expect(await world.store.runs({ limit: 10 })).toHaveLength(1);
  });

  it("I2 P17 a start whose answer was lost is acknowledged when the run is found to be there", async () => {
    const world = await openWorld("memory");
    const { passed, open } = gate();
    const stepping = workflow("stepping", async (ctx) => ctx.step("a", () => passed));
    const pawl = await openOn(faultStore(world.store, { commits: { 1: "lose-answer" } }), {}, [stepping]);
    const run = await pawl.start(stepping);
    open();
    await run.result();
    expect(await world.store.runs({ limit: 10 })).toHaveLength(1);
  });

  it("I2 a write in doubt is not reported as failed because the store is away later", async () => {
    const world = await openWorld("memory");
    const late = workflow("late", async () => "done");
    const pawl = await openOn(faultStore(world.store, { commits: { 1: "lose-answer", 2: "fail", 3: "fail" } }), {}, [
      late,
    ]);
    const run = await pawl.start(late, undefined, { delay: "1 day", id: "r" });
    expect(run.id).toBe("r");
  });

  it("I2 a start on the spot in doubt is not reported as failed because the store is away later", async () => {
    const world = await openWorld("memory");
    const instant = workflow("instant", async () => "done");
    const faults = faultStore(world.store, { commits: { 1: "lose-answer", 2: "fail", 3: "fail" } });
    const pawl = await openOn(faults, {}, [instant]);
    const run = await pawl.start(instant);
    expect(await run.result()).toBe("done");
    expect(faults.commits.length).toBeGreaterThan(3);
    expect(await world.store.runs({ limit: 10 })).toHaveLength(1);
  });

  it("P17 a start that waits behind a commit of unknown outcome is written after all", async () => {
    const world = await openWorld("memory");
    const answer = gate();
    const stepping = workflow("stepping", async (ctx) => ctx.step("a", () => "done"));
    let n = 0;
    const pawl = await openOn(
      world.store,
      {
        commit: async (request: Commit) => {
          if (++n > 1) return world.store.commit(request);
          await answer.passed;
          throw lost();
        },
      },
      [stepping],
    );
    const first = pawl.start(stepping);
    await rounds(5);
    const second = pawl.start(stepping);
    await rounds(5);
    answer.open();
    expect(await stateOf(first)).toBe("resolved");
    expect(await stateOf(second)).toBe("resolved");
    expect(await (await second).result()).toBe("done");
  });

  it("P17 names also the incarnation whose own fencing was never answered", async () => {
    const world = await openWorld("memory");
    const hold = gate<string>();
    let begun = 0;
    const stepping = workflow("stepping", async (ctx) => {
      const a = ctx.step("a", () => {
        begun++;
        return hold.passed;
      });
      await ctx.step("b", () => 1);
      return a;
    });
    let fences = 0;
    const pawl = await openOn(
      faultStore(world.store, { commits: { 2: "lose-answer" } }),
      {
        fence: async (request) => {
          const reply = await world.store.fence(request);
          if (request.successor !== undefined && ++fences === 1) throw lost();
          return reply;
        },
      },
      [stepping],
    );
    const run = await pawl.start(stepping);
    await expect.poll(() => fences, { timeout: 10_000 }).toBe(2);
    await rounds();
    hold.open("done");
    expect(await run.result()).toBe("done");
    expect(begun).toBe(1);
    expect(await world.store.workers()).toHaveLength(1);
  });

  it("P17 a pass that is lost leaves nothing behind that idle waits for", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const waiting = workflow("waiting", async (ctx) => ctx.waitFor("go", { timeout: 500, default: "none" }));
    let isAway = false;
    const pawl = await openOn(
      world.store,
      {
        owned: async (worker, options) => {
          if (isAway) throw new PawlError("storage_unavailable", "away");
          return world.store.owned(worker, options);
        },
        fence: async (request) => {
          // Somebody else has taken everything meanwhile.
          const [thief] = await world.store.workers();
          if (thief !== undefined)
            await world.store.fence({ workers: request.workers, successor: { ...thief, id: "thief" } });
          return world.store.fence(request);
        },
      },
      [waiting],
    );
    await pawl.start(waiting);
    await rounds();
    isAway = true;
    // Its wait is over, so it asks for its mail; before that comes, the run is lost.
    world.clock.advance(500);
    await rounds();
    const [own] = await world.store.workers();
    await world.store.fence({ workers: [own?.id ?? ""], successor: { ...(own as NewWorker), id: "thief" } });
    leaseClock.advance(5000);
    await rounds();
    isAway = false;
    expect(await stateOf(pawl.idle())).toBe("resolved");
    await world.store.fence({ workers: ["thief"] });
  });

  it("P28 a suspect that is lost does not keep others from being tried", async () => {
    const world = await openWorld("memory");
    const hold = gate<string>();
    const begun: string[] = [];
    const stepping = workflow("stepping", async (ctx) =>
      ctx.step("a", () => {
        begun.push(ctx.run.id);
        return hold.passed;
      }),
    );
    for (let death = 0; death < 2; death++) {
      const mortal = await world.open([stepping]);
      if (death === 0) for (const id of ["x", "y"]) await mortal.start(stepping, undefined, { id });
      await world.settle();
      world.kill(mortal);
      await world.fence();
    }
    begun.length = 0;
    let stolen: string | null = null;
    const pawl = await openOn(
      world.store,
      {
        take: async (worker, run) => (run === stolen ? null : world.store.take(worker, run)),
        commit: async (request) => {
          const verdicts = await world.store.commit(request);
          // The first suspect turns out to be somebody else's.
          if (stolen !== null || request.runs[0] === undefined) return verdicts;
          stolen = request.runs[0].run;
          return request.runs.map(({ run }) => ({ run, kind: "conflict", head: 0 }));
        },
      },
      [stepping],
    );
    await rounds();
    void pawl.idle();
    await rounds();
    expect(begun).toHaveLength(1);
    hold.open("done");
  });

  it("P5 a claim counts its mail as read before it asked", async () => {
    const world = await openWorld("memory");
    const waiting = workflow("waiting", async (ctx) => {
      await ctx.waitFor("first");
      return ctx.waitFor("go", { timeout: "1 minute", default: "none" });
    });
    const first = await world.open([waiting]);
    await first.start(waiting, undefined, { id: "r" });
    await world.settle();
    await first.signal("r", "first");
    await world.settle();
    await first.close();
    await world.store.deliver({ to: "r", id: "wake", kind: "signal", name: "other", data: null });
    const client = await world.open([]);
    let isFirst = true;
    const worker = await openOn(
      world.store,
      {
        claim: async (request) => {
          const claimed = await world.store.claim(request);
          if (claimed.length === 0 || !isFirst) return claimed;
          isFirst = false;
          // The answer takes its time; meanwhile a signal is acknowledged, before the wait is over.
          await client.signal("r", "go", "yes");
          world.clock.advance(60_000);
          return claimed;
        },
      },
      [waiting],
    );
    expect(await worker.get("r").result()).toBe("yes");
  });

  it("I9 B18 a sweeper calls nobody dead who was heard of before it could fence them", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const { store } = world;
    const told: string[] = [];
    const logger = { ...silent, info: (message: string) => void told.push(message) };
    let isHeard = true;
    const fence = async (request: FenceRequest) => {
      if (isHeard) await store.heartbeat("other");
      return store.fence(request);
    };
    await openOn(store, { fence }, [workflow("any", async () => 1)], { logger });
    await store.register(await otherWorker(store));
    const advance = async () => {
      for (let second = 0; second < 40; second++) {
        leaseClock.advance(1000);
        await rounds(20);
      }
    };
    await advance();
    expect(told).toEqual([]);
    isHeard = false;
    await advance();
    expect(told).toEqual([expect.stringMatching(/^Worker other .*is dead/)]);
  });

  it("P25 a break in a pulse ends the time that a sweeper has held on", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    let confirmedAt = leaseClock.monotonic();
    let isAway = false;
    const pulse = (): Pulse => ({
      confirmedAt: () => confirmedAt,
      beat: () => {
        if (!isAway) confirmedAt = leaseClock.monotonic();
      },
      stop: async () => {},
    });
    const any = workflow("any", async () => 1);
    await openOn(world.store, { pulse } as Partial<Store>, [any]);
    await world.store.register(await otherWorker(world.store));
    const advance = async (seconds: number) => {
      for (let second = 0; second < seconds; second++) {
        leaseClock.advance(1000);
        await rounds(20);
      }
    };
    const ids = async () => (await world.store.workers()).map((worker) => worker.id);
    isAway = true;
    await advance(20);
    isAway = false;
    await advance(8);
    expect(await ids()).toContain("other");
    await advance(30);
    expect(await ids()).not.toContain("other");
  });

  it("W2 a run that was let go meanwhile and is loaded again may end", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const waiting = workflow("waiting", async (ctx) => ctx.waitFor("go"));
    let isStale = false;
    const pawl = await openOn(
      world.store,
      {
        claim: async (request) => (isStale ? [] : world.store.claim(request)),
        owned: async (worker, options) => {
          const owned = await world.store.owned(worker, options);
          // The list was read before the run was suspended.
          return isStale && !options.news ? [...owned, { run: "r", head: 0, wake: 0, cancel: null, inbox: [] }] : owned;
        },
      },
      [waiting],
    );
    const run = await pawl.start(waiting, undefined, { id: "r" });
    await rounds();
    isStale = true;
    await run.signal("go", 1);
    leaseClock.advance(5000);
    await rounds();
    expect((await world.store.run("r"))?.state).toBe("succeeded");
  });

  it("P23 a run whose creation was not answered is loaded with the new incarnation, not with the next heartbeat", async () => {
    const world = await openWorld("memory", { leaseClock: manualClock() });
    const any = workflow("any", async (ctx) => ctx.step("a", () => "done"));
    const pawl = await openOn(faultStore(world.store, { commits: { 1: "lose-answer" } }), {}, [any]);
    const run = await pawl.start(any, undefined, { key: "k" });
    await rounds();
    expect((await world.store.run(run.id))?.state).toBe("succeeded");
  });

  it("P23 runs of a claim that was not answered are loaded at once, not with the next heartbeat", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const any = workflow("any", async (ctx) => ctx.step("a", () => "done"));
    const claim = async (request: ClaimRequest) => {
      if ((await world.store.claim(request)).length > 0) throw lost();
      return [];
    };
    await openOn(world.store, { claim }, [any]);
    const client = await openOn(world.store, {}, []);
    for (const id of ["x", "y"]) await client.start("any", undefined, { id, version: "1.0.0" });
    leaseClock.advance(1000);
    await rounds();
    const runs = await world.store.runs({ limit: 9 });
    expect(runs.map(({ state }) => state)).toEqual(["succeeded", "succeeded"]);
  });

  it("P23 a run that cannot be loaded does not keep those behind it from being loaded", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const any = workflow("any", async (ctx) => ctx.step("a", () => "done"));
    const isMine: string[] = [];
    await openOn(
      world.store,
      {
        claim: async (request) => {
          const claimed = await world.store.claim(request);
          isMine.push(...claimed.map(({ run }) => run));
          throw lost();
        },
        take: async (worker, run) => {
          if (run === "x") throw lost();
          return world.store.take(worker, run);
        },
      },
      [any],
    );
    const client = await openOn(world.store, {}, []);
    for (const id of ["x", "y"]) await client.start("any", undefined, { id, version: "1.0.0" });
    leaseClock.advance(1000);
    await rounds();
    expect(isMine).toEqual(["x", "y"]);
    leaseClock.advance(5000);
    await rounds();
    expect((await world.store.run("y"))?.state).toBe("succeeded");
  });
});

describe("an event loop that stands still", () => {
  it("I27 B21 is warned of once, with how long, if a heartbeat was missed by it", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const warned: string[] = [];
    const logger = { ...silent, warn: (message: string) => void warned.push(message) };
    const clock = stallingClock(leaseClock);
    const any = workflow("any", async () => 1);
    await openOn(world.store, { leaseClock: clock }, [any], { logger, lease: "15s" });
    const beat = async () => {
      leaseClock.advance(5000);
      await rounds(20);
    };
    await beat();
    clock.stand(4000);
    await beat();
    expect(warned).toEqual([]);
    clock.stand(12_000);
    await beat();
    await beat();
    expect(warned).toEqual([expect.stringMatching(/^The event loop of worker \S+ stood still for 12 s or longer\./)]);
  });
});
