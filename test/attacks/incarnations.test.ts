// What becomes of passes when their worker loses its incarnation, or only the answer to a commit.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import type { Commit, Store, Verdict } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { type CommitFault, faultStore } from "../../src/testing/fault-store.ts";
import { gate, openWorld, STORES_AT_ONCE, type World } from "../behaviour/harness.ts";
import { lost, noting, openOn, rounds, tick } from "./rig.ts";

const noHints = { hints: () => () => {} };

function has(request: Commit, type: string, key: string): boolean {
  return request.runs.some(({ entries }) => entries.some((one) => one.type === type && one.key === key));
}

async function onlyWorker(world: World): Promise<string> {
  const workers = await world.store.workers();
  expect(workers).toHaveLength(1);
  return workers[0]?.id ?? "";
}

describe.each(STORES_AT_ONCE)("a pass whose run was lost on %s", (kind) => {
  it("P14 I8 E-19 aborts its step with lease_lost, and what the step still returns is not recorded", async () => {
    const leaseClock = manualClock();
    const world = await openWorld(kind, { leaseClock });
    const hold = gate<string>();
    const held: { signal?: AbortSignal } = {};
    const on = (worker: string) =>
      workflow("stepping", async (ctx) => {
        const by = await ctx.step("a", ({ attempt, signal }) => {
          if (attempt > 1) return worker;
          held.signal = signal;
          return hold.passed;
        });
        return [by, await ctx.step("b", () => worker)];
      });
    const loser = await openOn(world.store, noHints, [on("loser")]);
    await loser.start("stepping", undefined, { id: "r", version: "1.0.0" });
    await rounds();
    await world.store.fence({ workers: [await onlyWorker(world)] });
    const other = await openOn(world.store, noHints, [on("other")]);
    expect(await other.get("r").result()).toEqual(["other", "other"]);
    const ended = await world.store.journal("r");
    expect(held.signal?.aborted).toBe(false);
    // The next heartbeat tells the loser.
    leaseClock.advance(5000);
    await rounds();
    expect(held.signal?.aborted).toBe(true);
    expect(held.signal?.reason).toMatchObject({ code: "lease_lost", fields: { run: "r" } });
    hold.open("loser");
    await rounds();
    expect(await world.store.journal("r")).toEqual(ended);
  });

  it("E-19 P13 a run that is parked aborts its steps with run_parked, once that is durable", async () => {
    const world = await openWorld(kind);
    const parks = gate();
    const elsewhere = gate();
    const held: { signal?: AbortSignal } = {};
    const parking = workflow("parking", async (ctx) => {
      const long = ctx.step("long", ({ signal }) => {
        held.signal = signal;
        return new Promise<never>(() => {});
      });
      // A foreign await beside a pending call.
      await elsewhere.passed;
      await Promise.all([long, ctx.step("after", () => 1)]);
    });
    const pawl = await openOn(
      world.store,
      {
        commit: async (request) => {
          if (request.runs.some((part) => part.entries.some(({ type }) => type === "run.parked"))) await parks.passed;
          return world.store.commit(request);
        },
      },
      [parking],
    );
    await pawl.start(parking, undefined, { id: "r" });
    await rounds();
    elsewhere.open();
    await rounds();
    expect(held.signal?.aborted).toBe(false);
    parks.open();
    await rounds();
    expect(held.signal?.reason).toMatchObject({ code: "run_parked", fields: { run: "r" } });
    expect((await world.store.run("r"))?.state).toBe("parked");
  });
});

describe.each(STORES_AT_ONCE)("the answer to a commit was lost on %s", (kind) => {
  /** An engine that loses the answer to the commit that begins step b, applied or not; `meanwhile` is what happens before it knows. */
  async function losing(applies: boolean, meanwhile: (world: World) => Promise<void> = async () => {}) {
    const leaseClock = manualClock();
    const world = await openWorld(kind, { leaseClock });
    const calls: string[] = [];
    const begun: string[] = [];
    const hold = gate();
    const stepping = workflow("stepping", async (ctx) => {
      await ctx.step("a", () => 1);
      const got = ctx.waitFor("go", { timeout: "1 day", default: "nothing" });
      const attempt = await ctx.step("b", async (info) => {
        begun.push(`b ${info.attempt}`);
        await hold.passed;
        return info.attempt;
      });
      return [attempt, await got];
    });
    let isLost = false;
    const overrides: Partial<Store> = {
      ...noHints,
      commit: async (request) => {
        calls.push("commit");
        if (isLost || !has(request, "step.started", "b")) return world.store.commit(request);
        isLost = true;
        if (applies) await world.store.commit(request);
        await meanwhile(world);
        calls.length = 0;
        throw lost();
      },
    };
    for (const name of ["fence", "owned", "take", "claim", "heartbeat", "run", "journal", "workers"] as const) {
      const real = world.store[name] as (...args: unknown[]) => Promise<unknown>;
      Object.assign(overrides, {
        [name]: (...args: unknown[]) => {
          calls.push(name === "fence" && "successor" in (args[0] as object) ? "fence with a successor" : name);
          return real(...args);
        },
      });
    }
    const pawl = await openOn(world.store, overrides, [stepping]);
    await pawl.start(stepping, undefined, { id: "r" });
    await rounds();
    return { world, calls, begun, hold, stepping };
  }

  it.each([
    ["P17 fences itself before it reads or writes anything, and goes on from what was applied", true],
    ["P17 fences itself before it reads or writes anything, and offers again what was not applied", false],
  ])("%s", async (_title, applies) => {
    const { world, calls, begun, hold } = await losing(applies);
    expect(calls[0]).toBe("fence with a successor");
    expect(begun).toEqual(["b 1"]);
    hold.open();
    await rounds();
    const journal = await world.journal("r");
    expect(journal.filter((line) => line === "step.started b")).toHaveLength(1);
    expect(journal).toContain("step.completed b");
  });

  it("P17 drops a pass whose run was not moved, though its head is the end of the batch", async () => {
    const { world, begun, hold, stepping } = await losing(true, async (before) => {
      await before.store.fence({ workers: [await onlyWorker(before)], successor: await thief(before) });
    });
    expect(begun).toEqual([]);
    hold.open();
    await world.store.fence({ workers: ["thief"] });
    const other = await openOn(world.store, noHints, [stepping]);
    await other.signal("r", "go", "mail");
    expect(await other.get("r").result()).toEqual([2, "mail"]);
    expect(begun).toEqual(["b 2"]);
  });

  it("P17 P5 takes over the mail that came with the runs, without asking for it", async () => {
    const { world, begun, hold } = await losing(true, async (before) => {
      await before.store.deliver({ to: "r", id: "m", kind: "signal", name: "go", data: null });
    });
    // Step b runs, so the run does not ask to be suspended; and neither a hint nor a poll could have told of it.
    expect(begun).toEqual(["b 1"]);
    expect(await world.journal("r")).toContain("signal.received go");
    hold.open();
  });
});

/** Somebody else who has everything now, and does nothing with it. */
async function thief(world: World) {
  const [own] = await world.store.workers();
  if (own === undefined) throw new Error("there is no worker to rob");
  return { ...own, id: "thief" };
}

describe.each(STORES_AT_ONCE)("an answer to an old incarnation on %s", (kind) => {
  /** An engine whose commits that begin step b wait for their answers, in turn; its next heartbeat says that it was fenced. */
  async function answering(answers: readonly Promise<Verdict[] | "apply">[], appliesFirst: boolean) {
    const leaseClock = manualClock();
    const world = await openWorld(kind, { leaseClock });
    const hold = gate<string>();
    const begun: number[] = [];
    const lines: string[] = [];
    const stepping = workflow("stepping", async (ctx) => {
      await ctx.step("a", () => 1);
      return ctx.step("b", ({ attempt }) => {
        begun.push(attempt);
        return hold.passed;
      });
    });
    let commits = 0;
    const pawl = await openOn(
      world.store,
      {
        ...noHints,
        pulse: undefined as never,
        commit: async (request) => {
          const answer = has(request, "step.started", "b") ? answers[commits++] : undefined;
          if (answer === undefined) return world.store.commit(request);
          if (appliesFirst) await world.store.commit(request);
          const verdicts = await answer;
          return verdicts === "apply" ? world.store.commit(request) : verdicts;
        },
        heartbeat: async (worker) => (commits === 1 ? { alive: false, others: 0 } : world.store.heartbeat(worker)),
      },
      [stepping],
      { logger: noting(lines) },
    );
    await pawl.start(stepping, undefined, { id: "r" });
    await rounds();
    expect(begun).toEqual([]);
    leaseClock.advance(5000);
    await rounds();
    return { world, pawl, hold, begun, lines };
  }

  it("P17 that says applied is ignored: what was offered again is not durable by it", async () => {
    const [old, again] = [gate<Verdict[]>(), gate<"apply">()];
    const { pawl, hold, begun } = await answering([old.passed, again.passed], false);
    old.open([{ run: "r", kind: "applied" }]);
    await rounds();
    expect(begun).toEqual([]);
    again.open("apply");
    hold.open("done");
    expect(await pawl.get("r").result()).toBe("done");
    expect(begun).toEqual([1]);
  });

  it.each([
    ["P17 that says conflict is ignored: nothing is loaded again", "conflict"],
    ["P17 that is an error is ignored: the new incarnation stays", "error"],
  ])("%s", async (_title, late) => {
    const old = gate<Verdict[]>();
    const { world, pawl, hold, begun, lines } = await answering([old.passed], true);
    expect(begun).toEqual([1]);
    const worker = await onlyWorker(world);
    if (late === "error") old.fail(lost());
    else old.open([{ run: "r", kind: "conflict", head: 0 }]);
    await rounds();
    hold.open("done");
    expect(await pawl.get("r").result()).toBe("done");
    expect(begun).toEqual([1]);
    expect(await onlyWorker(world)).toBe(worker);
    expect(lines.filter((line) => line.includes("loaded again"))).toEqual([]);
  });
});

describe("a step that must not run twice", () => {
  /** Runs it to its end with a fault at commit `n`; `null` if there is no such commit. */
  async function withFault(fault: CommitFault, n: number) {
    const leaseClock = manualClock();
    const isDeadly = fault.startsWith("kill");
    // A dead process has no clock that could be moved.
    const world = await openWorld("memory", isDeadly ? {} : { leaseClock });
    let starts = 0;
    const charging = workflow("charging", async (ctx) => {
      await ctx.step("before", () => 1);
      const receipt = await ctx.step("charge", () => `receipt ${++starts}`, { recovery: "fail", retry: false });
      return ctx.step("after", () => receipt);
    });
    const store = faultStore(world.store, { commits: { [n]: fault } });
    const pawl = await openOn(store, noHints, [charging]);
    void pawl.start(charging, undefined, { id: "r" }).catch(() => {});
    await rounds();
    if (isDeadly) {
      await world.store.fence({ workers: [await onlyWorker(world)] });
      await openOn(world.store, noHints, [charging]);
      await rounds();
    } else await tick(leaseClock, 5);
    const { stopReason = null } = (await world.store.run("r")) ?? {};
    return store.commits.some((commit) => commit.fault !== null) ? { starts, stopReason } : null;
  }

  async function everywhere(fault: CommitFault) {
    const ends: { starts: number; stopReason: string | null }[] = [];
    for (let n = 1; ; n++) {
      const end = await withFault(fault, n);
      if (end === null) return ends;
      ends.push(end);
    }
  }

  it("I6 P17 begins once, whichever answer of the store is lost", async () => {
    const ends = await everywhere("lose-answer");
    expect(ends).toEqual(Array.from({ length: 5 }, () => ({ starts: 1, stopReason: "completed" })));
  });

  it.each(["kill-before", "kill-after"] as const)(
    "I6 C-3 begins at most once, with death by %s at every commit",
    async (fault) => {
      const ends = await everywhere(fault);
      expect(ends).toHaveLength(5);
      for (const { starts, stopReason } of ends) {
        expect(starts).toBeLessThanOrEqual(1);
        expect(["completed", "step_interrupted", null]).toContain(stopReason);
      }
      expect(ends.filter(({ stopReason }) => stopReason === "step_interrupted")).toHaveLength(1);
      // Without its start on record, there is no run.
      expect(ends.filter(({ stopReason }) => stopReason === null)).toHaveLength(fault === "kill-before" ? 1 : 0);
    },
  );
});

it("P15 a run has at most one commit under way, whatever the number of lanes", async () => {
  const world = await openWorld("memory");
  const underWay: string[] = [];
  const twice: string[] = [];
  const answers: (() => void)[] = [];
  let most = 0;
  const parallel = workflow("parallel", async (ctx) => {
    for (let round = 0; round < 3; round++)
      await Promise.all(["a", "b", "c"].map((name, i) => ctx.step(name, () => rounds(i))));
  });
  const pawl = await openOn(
    world.store,
    {
      lanes: 4,
      commit: async (request) => {
        const runs = request.runs.map(({ run }) => run);
        twice.push(...runs.filter((run) => underWay.includes(run)));
        underWay.push(...runs);
        await new Promise<void>((resolve) => {
          most = Math.max(most, answers.push(resolve));
        });
        for (const run of runs) underWay.splice(underWay.indexOf(run), 1);
        return world.store.commit(request);
      },
    },
    [parallel],
  );
  let isOver = false;
  const ids = Array.from({ length: 8 }, (_, i) => `r${i}`);
  const all = Promise.all(ids.map((id) => pawl.run(parallel, undefined, { id }))).finally(() => (isOver = true));
  // The disk is slow and answers out of order: everybody has more to write by then.
  while (!isOver) {
    await rounds(8);
    answers.splice(Math.floor(answers.length / 2), 1)[0]?.();
  }
  await all;
  expect(twice).toEqual([]);
  expect(most).toBe(4);
});
