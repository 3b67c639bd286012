// What happens between a question to the store and its answer: mail, a cancel, a decision, or the same run by another way.
import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { RetryableError } from "../../src/base/errors.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { ClaimRequest, Commit, Mail, RunCommit, Store } from "../../src/core/store.ts";
import { type Workflow, workflow } from "../../src/core/workflow.ts";
import { faultStore } from "../../src/testing/fault-store.ts";
import { errorOf, gate, HOUR, openWorld, type World } from "../behaviour/harness.ts";
import { away, openOn, rounds } from "./rig.ts";

/** Parks at once: nobody can tell whether it has paid. */
const paying = workflow({ name: "paying", retry: false }, async (ctx) =>
  ctx.effect("pay", {
    do: () => {
      throw new RetryableError("the line went dead");
    },
  }),
);

/** The first call goes to `first`, all others to `then`. */
function once<A extends readonly unknown[], R>(first: (...args: A) => R, then: (...args: A) => R): (...args: A) => R {
  let calls = 0;
  return (...args) => (calls++ === 0 ? first : then)(...args);
}

/** What a worker owns, read before it let this run go. */
function withStale(owned: readonly Mail[], run: string): Mail[] {
  return [...owned, { run, head: 0, wake: 0, cancel: null, inbox: [] }];
}

describe("a run that this worker owns by two ways", () => {
  it("P23 RL1 is not loaded by the late answer to a claim: it was found by its owner meanwhile, and is gone again", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const answer = gate();
    let bodies = 0;
    const sleeping = workflow("sleeping", async (ctx) => {
      bodies++;
      await ctx.sleep("1h");
      return "awake";
    });
    const claim = async (request: ClaimRequest) => {
      const claimed = await world.store.claim(request);
      if (claimed.length > 0 && bodies === 0) await answer.passed;
      return claimed;
    };
    await openOn(world.store, { claim }, [sleeping]);
    const client = await openOn(world.store, {}, []);
    await client.start("sleeping", undefined, { id: "r", version: "1.0.0" });
    leaseClock.advance(1000);
    await rounds();
    expect(bodies).toBe(0);
    // With its heartbeat the worker finds that it owns a run which it does not hold.
    leaseClock.advance(5000);
    await rounds();
    expect(bodies).toBe(1);
    expect(await world.store.run("r")).toMatchObject({ state: "waiting", owner: null });
    answer.open();
    await rounds();
    expect(bodies).toBe(1);
    expect(await world.store.run("r")).toMatchObject({ state: "waiting", owner: null });
    world.clock.advance(HOUR);
    await rounds();
    expect((await world.store.run("r"))?.state).toBe("succeeded");
  });

  it("P18 that is parked is not let go while somebody decides about it: nobody would wake it for that", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    let isStale = false;
    const client = await openOn(world.store, {}, []);
    const overrides = {
      owned: async (worker: string, options: { news: boolean }) => {
        const owned = await world.store.owned(worker, options);
        return isStale && !options.news ? withStale(owned, "r") : owned;
      },
      commit: async (request: Commit) => {
        if (isStale) await client.resolve("r", { choice: "happened", value: "paid" });
        isStale = false;
        return world.store.commit(request);
      },
    };
    const pawl = await openOn(world.store, overrides, [paying]);
    await pawl.start(paying, undefined, { id: "r" });
    await rounds();
    expect(await world.store.run("r")).toMatchObject({ state: "parked", owner: null });
    isStale = true;
    leaseClock.advance(5000);
    await rounds();
    expect(isStale).toBe(false);
    expect((await world.store.run("r"))?.state).toBe("succeeded");
  });

  it("I4 that waited and was taken by its name, not claimed, is shown as running", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const hold = gate<string>();
    const waiting = workflow("waiting", async (ctx) => {
      await ctx.waitFor("go");
      return ctx.step("a", () => hold.passed);
    });
    let isStale = false;
    const overrides = {
      claim: async (request: ClaimRequest) => (isStale ? [] : world.store.claim(request)),
      owned: async (worker: string, options: { news: boolean }) => {
        const owned = await world.store.owned(worker, options);
        return isStale && !options.news ? withStale(owned, "r") : owned;
      },
    };
    const pawl = await openOn(world.store, overrides, [waiting]);
    const run = await pawl.start(waiting, undefined, { id: "r" });
    await rounds();
    isStale = true;
    await run.signal("go");
    leaseClock.advance(5000);
    await rounds();
    expect(await world.journal("r")).toContain("step.started a");
    expect((await world.store.run("r"))?.state).toBe("running");
    hold.open("done");
    expect(await run.result()).toBe("done");
  });

  it("I4 that is parked and comes when there is no room any more is handed back as parked", async () => {
    const world = await openWorld("memory", { leaseClock: manualClock() });
    const hold = gate<string>();
    const busy = workflow("busy", async (ctx) => ctx.step("a", () => hold.passed));
    const claim = async (request: ClaimRequest) => {
      const claimed = await world.store.claim(request);
      // Before the answer is there, somebody starts another run on the spot.
      if (claimed.length > 0 && (await world.store.run("other")) === null)
        await pawl.start(busy, undefined, { id: "other" });
      return claimed;
    };
    const pawl = await openOn(world.store, { claim }, [paying, busy], { concurrency: 1 });
    const run = await pawl.start(paying, undefined, { id: "r" });
    await rounds();
    await pawl.resolve("r", { choice: "happened", value: "paid" });
    await rounds();
    expect((await world.store.run("other"))?.state).toBe("running");
    expect(await world.store.run("r")).toMatchObject({ state: "parked", owner: null });
    hold.open("done");
    expect(await run.result()).toBe("paid");
  });
});

describe("a run that is rewritten while this worker claims it", () => {
  const edit = { input: "edited", cause: "edit", by: "ann", reason: "a typo" } as const;

  /** A run that waits for its signal, and an engine whose looks at runs and claims may be held up. */
  async function waitingFor(overrides: (world: World) => Partial<Store>) {
    const world = await openWorld("memory", { leaseClock: manualClock() });
    const hold = gate();
    const [bodies, begun]: [string[], string[]] = [[], []];
    const flow = workflow<string, string>("flow", async (ctx, input) => {
      bodies.push(input);
      if (input === "first") await ctx.waitFor("go");
      await ctx.step("a", () => {
        begun.push(input);
        return hold.passed;
      });
      return input;
    });
    const pawl = await openOn(world.store, overrides(world), [flow]);
    onTestFinished(() => hold.open());
    const run = await pawl.start(flow, "first", { id: "r" });
    await rounds();
    return { world, pawl, run, bodies, begun, hold };
  }

  it("I6 is left alone once it is at work here, though it was seen waiting", async () => {
    let looks = 0;
    const { world, pawl, run, begun, hold } = await waitingFor(({ store }) => ({
      run: async (id) => {
        const row = await store.run(id);
        // The last look before it is taken.
        if (++looks === 2) {
          await store.deliver({ to: "r", id: "m", kind: "signal", name: "go", data: null });
          await rounds();
        }
        return row;
      },
    }));
    looks = 0;
    expect(await errorOf(pawl.rewrite("r", edit))).toMatchObject({ code: "run_busy" });
    expect(begun).toEqual(["first"]);
    hold.open();
    expect(await run.result()).toBe("first");
    expect(await world.journal("r")).not.toContain("run.continued");
  });

  it("RL1 is not begun by the late answer to the claim: it is another generation by then", async () => {
    const [claimed, written] = [gate(), gate()];
    let isSeen = false;
    const { pawl, run, bodies, hold } = await waitingFor(({ store }) => ({
      claim: async (request) => {
        const runs = await store.claim(request);
        if (isSeen && runs.length > 0) {
          isSeen = false;
          claimed.open();
          await written.passed;
        }
        return runs;
      },
      take: async (...args) => {
        isSeen = true;
        await store.deliver({ to: "r", id: "m", kind: "signal", name: "go", data: null });
        await claimed.passed;
        return store.take(...args);
      },
    }));
    await pawl.rewrite("r", edit);
    written.open();
    await rounds();
    expect(bodies).toEqual(["first", "edited"]);
    hold.open();
    expect(await run.result()).toBe("edited");
  });
});

describe("a run that a process has taken which does not have its code, and was not told", () => {
  it.each([
    ["to put it off", (client: Pawl) => client.start("w", "b", { debounce: { key: "k", wait: "1h" } })],
    ["to rewrite it", (client: Pawl) => client.rewrite("r", { input: "b", cause: "edit", by: "ann", reason: "typo" })],
  ])("P23 I10 is let go again: %s", async (_, act) => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const w = workflow<string, string>("w", async (ctx, input) => {
      if (input === "waiting") await ctx.waitFor("go");
      return input;
    });
    const take: Store["take"] = async (...args) => {
      await world.store.take(...args);
      throw away();
    };
    const worker = await openOn(world.store, {}, [w]);
    await worker.start(w, "waiting", { id: "r" });
    const put = await worker.start(w, "a", { debounce: { key: "k", wait: "1h" } });
    await rounds();
    const client = await openOn(world.store, { take: once(take, world.store.take) }, []);
    await errorOf(Promise.resolve(act(client)));
    world.clock.advance(HOUR);
    // With its next heartbeat it finds out.
    leaseClock.advance(5000);
    await rounds();
    await worker.signal("r", "go");
    await rounds();
    expect(await Promise.all([worker.get("r").result(), put.result()])).toEqual(["waiting", "a"]);
  });
});

describe("a run that stands in line for a slot and was taken to be rewritten, and its worker was not told", () => {
  it("P23 I18 stands in line again", async () => {
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const hold = gate();
    const begun: string[] = [];
    const job = workflow<string, string>({ name: "job", concurrency: 1 }, async (ctx, input) => {
      if (input === "first") await ctx.waitFor("go");
      await ctx.step("a", () => {
        begun.push(`${ctx.run.id} ${input}`);
        return hold.passed;
      });
      return input;
    });
    let isLost = false;
    const take: Store["take"] = async (...args) => {
      const taken = await world.store.take(...args);
      if (!isLost) return taken;
      isLost = false;
      throw away();
    };
    const pawl = await openOn(world.store, { take }, [job]);
    onTestFinished(() => hold.open());
    for (const id of ["a", "b"]) await pawl.start(job, "first", { id });
    await rounds();
    await pawl.signal("a", "go");
    await rounds();
    const edit = (input: string) => pawl.rewrite("b", { input, cause: "edit", by: "ann", reason: "a typo" });
    await edit("second");
    isLost = true;
    expect(await errorOf(edit("third"))).toMatchObject({ code: "storage_unavailable" });
    leaseClock.advance(5000);
    await rounds();
    expect(begun).toEqual(["a first"]);
    expect((await world.store.run("b"))?.owner).toBeNull();
    hold.open();
    expect(await pawl.get("b").result()).toBe("second");
  });
});

describe("a further start of a burst", () => {
  const debounce = { key: "k", wait: "1h" };
  const late = workflow<string, string>("late", async (_, input) => input);

  it("P17 I4 that is written by the next incarnation, which has claimed the run meanwhile, leaves it as not begun", async () => {
    const world = await openWorld("memory", { leaseClock: manualClock() });
    let tries = 0;
    const commit = async (request: Commit) => {
      const isFurther = request.runs.some(({ entries }) => entries.some(({ type }) => type === "run.continued"));
      if (isFurther && ++tries === 1) await world.store.fence({ workers: [request.worker as string] });
      else if (isFurther) await rounds();
      return world.store.commit(request);
    };
    const pawl = await openOn(world.store, { commit }, [late]);
    const { id } = await pawl.start(late, "a", { debounce });
    expect((await pawl.start(late, "b", { debounce })).id).toBe(id);
    await rounds();
    expect(tries).toBe(2);
    expect(await world.store.run(id)).toMatchObject({ state: "accepted", owner: null, claims: 0 });
    world.clock.advance(HOUR);
    expect(await pawl.get(id).result()).toBe("b");
  });

  it("P23 that cannot read what the run has gives it back", async () => {
    const world = await openWorld("memory", { leaseClock: manualClock() });
    let isTorn = false;
    const take: Store["take"] = async (...args) => {
      const taken = await world.store.take(...args);
      if (!isTorn || taken === null) return taken;
      isTorn = false;
      return { ...taken, journal: taken.journal.map((entry) => ({ ...entry, data: "torn" })) };
    };
    const pawl = await openOn(world.store, { take }, [late]);
    const { id } = await pawl.start(late, "a", { debounce });
    await pawl.start(late, "b", { debounce });
    isTorn = true;
    expect(await errorOf(pawl.start(late, "c", { debounce }))).toMatchObject({ code: "corrupt_value" });
    await rounds();
    expect(await world.store.run(id)).toMatchObject({ state: "accepted", owner: null });
  });
});

describe("a commit", () => {
  it("P17 I2 of a start whose answer was lost is the start, whatever else the store cannot tell then", async () => {
    const world = await openWorld("memory");
    const journal = async () => {
      throw away();
    };
    const later = workflow("later", async () => "done");
    const pawl = await openOn(faultStore(world.store, { commits: { 1: "lose-answer" } }), { journal }, [later]);
    const run = await pawl.start(later, undefined, { delay: "1 day" });
    expect(await world.store.runs({ limit: 9 })).toMatchObject([{ id: run.id, state: "accepted" }]);
  });

  it("P18 that is offered again does not make a run forget that it wanted to be suspended meanwhile", async () => {
    const world = await openWorld("memory", { leaseClock: manualClock() });
    const patient = workflow("patient", async (ctx) => ctx.waitFor("go", { timeout: "1h", default: "late" }));
    const asked: (number | undefined)[] = [];
    const commit = async (request: Commit) => {
      const part = request.runs.find(({ entries }) => entries.some(({ type }) => type === "signal.awaited"));
      if (part === undefined) return world.store.commit(request);
      asked.push(part.ifWake);
      // Mail overtakes the suspension; when the rest of it is offered again, the mail was read before that is answered.
      if (asked.length === 1)
        await world.store.deliver({ to: "r", id: "m", kind: "signal", name: "other", data: null });
      const verdicts = await world.store.commit(request);
      await rounds();
      return verdicts;
    };
    const pawl = await openOn(world.store, { commit }, [patient]);
    const run = await pawl.start(patient, undefined, { id: "r" });
    await rounds(2000);
    expect(asked).toEqual([0, undefined]);
    expect(await world.store.run("r")).toMatchObject({ state: "waiting", owner: null });
    world.clock.advance(HOUR);
    expect(await run.result()).toBe("late");
  });
});

describe("an end that a cancel has taken back, before the mail tells of the cancel", () => {
  function isEnd({ entries }: RunCommit): boolean {
    return entries.some(({ type }) => type === "run.succeeded");
  }

  /** Runs `flow` until its end was refused; `told` lets the mail in and waits for the run's end. */
  async function overtake(flow: Workflow<undefined, unknown>) {
    const world = await openWorld("memory", { leaseClock: manualClock() });
    const mail = gate();
    let isOvertaken = false;
    const client = await openOn(world.store, {}, []);
    const overrides = {
      commit: async (request: Commit) => {
        if (!isOvertaken && request.runs.some(isEnd)) {
          isOvertaken = true;
          void client.cancel("r");
          await rounds();
        }
        return world.store.commit(request);
      },
      owned: async (worker: string, options: { news: boolean }) => {
        if (isOvertaken) await mail.passed;
        return world.store.owned(worker, options);
      },
    };
    const pawl = await openOn(world.store, overrides, [flow]);
    await pawl.start(flow, undefined, { id: "r" });
    await rounds(1000);
    expect(isOvertaken).toBe(true);
    const told = async () => {
      await rounds();
      mail.open();
      await rounds();
      return world.journal("r");
    };
    return { told };
  }

  it("P19 I5 is followed by no outcome of a step that is still under way", async () => {
    const slow = gate<string>();
    const hasty = workflow("hasty", async (ctx) => {
      void ctx.step("slow", () => slow.passed);
      return ctx.step("a", () => "done");
    });
    const { told } = await overtake(hasty);
    slow.open("late");
    const journal = await told();
    expect(journal.slice(-3)).toEqual(["step.completed a", "run.cancelling", "run.cancelled"]);
  });

  it("P19 I5 is followed by no call of a branch that goes on without the body", async () => {
    const elsewhere = gate();
    const begun: string[] = [];
    let bodies = 0;
    const hasty = workflow("hasty", async (ctx) => {
      if (++bodies === 1) void elsewhere.passed.then(() => ctx.step("late", () => void begun.push("late")));
      return ctx.step("a", () => "done");
    });
    const { told } = await overtake(hasty);
    elsewhere.open();
    const journal = await told();
    expect(journal.slice(-3)).toEqual(["step.completed a", "run.cancelling", "run.cancelled"]);
    expect(begun).toEqual([]);
  });
});
