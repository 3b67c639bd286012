import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { RetryableError } from "../../src/base/errors.ts";
import { LIMITS } from "../../src/core/limits.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { openOn } from "../attacks/rig.ts";
import { DAY, errorOf, gate, HOUR, openWorld, STORES, type World } from "./harness.ts";

const never = () => new Promise<never>(() => {});

async function expectCancelled(world: World, id: string): Promise<void> {
  const journal = await world.journal(id);
  expect(journal.at(-1)).toBe("run.cancelled");
  expect(journal.filter((line) => line === "run.cancelling")).toHaveLength(1);
  expect(await world.store.run(id)).toMatchObject({ state: "cancelled", stopReason: "cancelled", owner: null });
  expect(await world.store.waits({ run: id })).toEqual([]);
}

describe.each(STORES)("cancellation on %s", (store) => {
  it("P19 E-16 rejects what is pending, aborts what runs, and ends the run as cancelled", async () => {
    const world = await openWorld(store);
    const seen: unknown[] = [];
    const working = workflow("working", async (ctx) => {
      const calls = [
        ctx.step("hang", ({ signal }) => {
          signal.addEventListener("abort", () => seen.push("step aborted"));
          return never();
        }),
        ctx.sleep("1 day"),
        ctx.waitFor("go"),
      ];
      for (const call of calls) seen.push((await errorOf(call))["code"]);
      seen.push(ctx.signal.aborted, (await errorOf(ctx.step("new", () => seen.push("ran"))))["code"]);
      seen.push((await errorOf(ctx.spawn(workflow("other", async () => 1))))["code"]);
      return "whatever it returns";
    });
    const pawl = await world.open([working]);
    const run = await pawl.start(working);
    await world.settle();
    expect(await run.cancel({ reason: "not needed" })).toMatchObject({ outcome: expect.stringMatching(/cancel/) });
    const error = await errorOf(run.result());
    expect(error).toMatchObject({ code: "cancelled", fields: { run: run.id, reason: "not needed" } });
    expect(error.message).toContain("not needed");
    await world.settle();
    expect(seen.toSorted()).toEqual(
      ["cancelled", "cancelled", "cancelled", "cancelled", "cancelled", "step aborted", true].toSorted(),
    );
    await expectCancelled(world, run.id);
  });

  it("C-25 S2-57 S2-73 reaches the tools that run: one heeds its signal, and what a stubborn one returns later is refused", async () => {
    const world = await openWorld(store);
    const late = gate<string>();
    const events: string[] = [];
    const working = workflow("working", async (ctx) => {
      const heeding = ctx.step("heeding", ({ signal }) => {
        signal.addEventListener("abort", () => events.push(`heeds ${(signal.reason as { code: string }).code}`));
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      });
      const stubborn = ctx.step("stubborn", async () => {
        const value = await late.passed;
        events.push("stubborn is done");
        return value;
      });
      const results = await Promise.allSettled([heeding, stubborn]);
      events.push(...results.map(({ status }) => status));
      await ctx.step("next", () => events.push("next"));
    });
    const pawl = await world.open([working]);
    const run = await pawl.start(working);
    await world.settle();
    await run.cancel();
    // The run does not wait for the stubborn one.
    expect(await errorOf(run.result())).toMatchObject({ code: "cancelled" });
    expect(events.toSorted()).toEqual(["heeds cancelled", "rejected", "rejected"]);
    const journal = await world.journal(run);
    late.open("too late");
    await world.settle();
    expect(events.at(-1)).toBe("stubborn is done");
    expect(await world.journal(run)).toEqual(journal);
    expect(journal.slice(-4)).toEqual([
      "step.started heeding",
      "step.started stubborn",
      "run.cancelling",
      "run.cancelled",
    ]);
    await expectCancelled(world, run.id);
  });

  it("P19 rejects pending calls in the order of their issue and journals none of it, live and in replay", async () => {
    const world = await openWorld(store);
    const orders: string[][] = [];
    const cleaning = gate();
    const ordered = workflow("ordered", async (ctx) => {
      const order: string[] = [];
      orders.push(order);
      const calls = { a: ctx.waitFor("a"), b: ctx.step("b", never), c: ctx.sleep("1 day"), d: ctx.step("d", never) };
      for (const [name, call] of Object.entries(calls)) call.catch(() => order.push(name));
      await Promise.allSettled(Object.values(calls));
      await ctx.step("e", () => 1).catch(() => order.push("e"));
      await cleaning.passed;
    });
    const first = await world.open([ordered]);
    await first.start(ordered, undefined, { id: "r" });
    await world.settle();
    await first.cancel("r");
    await world.settle();
    await world.restart([ordered]);
    await world.settle();
    cleaning.open();
    await world.settle();
    expect(orders).toEqual([
      ["a", "b", "c", "d", "e"],
      ["a", "b", "c", "d", "e"],
    ]);
    expect(await world.journal("r")).toEqual([
      "run.started",
      "signal.awaited a",
      "step.started b",
      "timer.set sleep",
      "step.started d",
      "run.cancelling",
      "run.cancelled",
    ]);
  });

  it.each(["live", "after a restart"])(
    "P19 I16 C-25 closes a run whose body never ends after its cancel, %s",
    async (when) => {
      const leaseClock = manualClock();
      const world = await openWorld(store, { leaseClock });
      const stubborn = workflow("stubborn", async (ctx) => {
        try {
          await ctx.sleep("1 day");
        } finally {
          await never();
        }
      });
      let pawl = await world.open([stubborn]);
      await pawl.start(stubborn, undefined, { id: "r" });
      await world.settle();
      expect(await pawl.cancel("r")).toEqual({ outcome: "cancelling" });
      if (when !== "live") pawl = await world.restart([stubborn]);
      await world.settle();
      leaseClock.advance(LIMITS.cancelGraceMs - 1);
      await world.settle();
      expect((await world.journal("r")).at(-1)).toBe("run.cancelling");
      leaseClock.advance(1);
      await world.settle();
      await expectCancelled(world, "r");
      expect(await errorOf(pawl.get("r").result())).toMatchObject({ code: "cancelled" });
    },
  );

  describe("P19 in every state", () => {
    const stages = workflow({ name: "stages", retry: { jitter: false } }, async (ctx, stage: string) => {
      if (stage === "running") await ctx.step("hang", never);
      if (stage === "retrying")
        await ctx.step("fail", () => Promise.reject(new RetryableError("x", { retryAfter: "1 day" })));
      if (stage === "sleeping") await ctx.sleep("1 day");
      if (stage === "lingering") await ctx.sleep(900);
      if (stage === "signal") await ctx.waitFor("go");
      if (stage === "child") await ctx.call(stages, "signal");
      if (stage === "parked") await ctx.step("ask", never, { recovery: "ask" });
    });

    it.each(["running", "retrying", "sleeping", "lingering", "signal", "child"])("P19 while %s", async (stage) => {
      const world = await openWorld(store);
      const pawl = await world.open([stages]);
      const run = await pawl.start(stages, stage);
      await world.settle();
      await run.cancel();
      expect(await errorOf(run.result())).toMatchObject({ code: "cancelled" });
      await world.settle();
      await expectCancelled(world, run.id);
    });

    it("P19 while parked, with workers and without", async () => {
      const world = await openWorld(store);
      const first = await world.open([stages]);
      for (const id of ["a", "b"]) await first.start(stages, "parked", { id });
      await world.settle();
      const pawl = await world.restart([stages]);
      await pawl.idle();
      expect((await pawl.get("a").status()).state).toBe("parked");
      expect(await pawl.cancel("a")).toEqual({ outcome: "cancelled" });
      const client = await world.restart([]);
      expect(await client.cancel("b")).toEqual({ outcome: "cancelled" });
      for (const id of ["a", "b"]) await expectCancelled(world, id);
    });

    it("P19 before its first claim, and while delayed", async () => {
      const world = await openWorld(store);
      let bodies = 0;
      const counted = workflow("counted", async () => void bodies++);
      const client = await world.open();
      const run = await client.start("counted", undefined, { version: "1.0.0" });
      expect(await run.cancel()).toEqual({ outcome: "cancelled" });
      const pawl = await world.open([counted]);
      const delayed = await pawl.start(counted, undefined, { delay: "1h" });
      await delayed.cancel();
      expect(await errorOf(delayed.result())).toMatchObject({ code: "cancelled" });
      await world.advance(2 * HOUR);
      for (const { id } of [run, delayed]) await expectCancelled(world, id);
      expect(bodies).toBe(0);
    });

    it("P19 while no worker knows its workflow (stranded)", async () => {
      const world = await openWorld(store);
      await (await world.open([stages])).start(stages, "signal", { id: "r" });
      await world.settle();
      const client = await world.restart([workflow("unrelated", async () => 1)]);
      expect(await client.cancel("r")).toEqual({ outcome: "cancelled" });
      await expectCancelled(world, "r");
    });

    it("P19 while its process is dead: the next one cancels", async () => {
      const world = await openWorld(store);
      const first = await world.open([stages]);
      await first.start(stages, "running", { id: "r" });
      await world.settle();
      world.kill(first);
      const client = await world.open();
      const outcome = client.cancel("r");
      await world.settle();
      await world.fence();
      const pawl = await world.open([stages]);
      await pawl.idle();
      expect((await outcome).outcome).toMatch(/cancel/);
      await expectCancelled(world, "r");
    });
  });

  it("X-17 X-18 I16 tells every caller the recorded end: cancelling twice, and after the end", async () => {
    const world = await openWorld(store);
    const patient = workflow("patient", async (ctx) => ctx.waitFor("go"));
    const pawl = await world.open([patient]);
    const [cancelled, done] = [await pawl.start(patient), await pawl.start(patient)];
    await world.settle();
    const outcomes = await Promise.all([cancelled.cancel(), cancelled.cancel(), pawl.cancel(cancelled.id)]);
    for (const { outcome } of outcomes) expect(["cancelling", "cancelled"]).toContain(outcome);
    await errorOf(cancelled.result());
    expect(await cancelled.cancel()).toEqual({ outcome: "cancelled" });
    await done.signal("go");
    await done.result();
    expect(await done.cancel()).toEqual({ outcome: "succeeded" });
    expect(await errorOf(pawl.cancel("nobody"))).toMatchObject({ code: "run_not_found" });
    await expectCancelled(world, cancelled.id);
  });

  it("B53 I16 P19 records exactly one end when cancel races completion, at every point of the run", async () => {
    const ends = new Set<string>();
    // What goes to another process takes longer than a few rounds of the event loop: so do the steps, and the pauses, there.
    const isFar = store === "postgres";
    for (let rounds = 0; rounds < (isFar ? 10 : 30); rounds++) {
      const world = await openWorld(store);
      const [busy, pause] = isFar ? [3000, 200 * 2 ** rounds] : [0, rounds];
      const turnRound = async (times: number) => {
        for (let i = 0; i < times; i++) await new Promise<void>((resolve) => setImmediate(resolve));
      };
      const short = workflow("short", async (ctx) => {
        await ctx.step("a", () => turnRound(busy));
        await ctx.step("b", () => turnRound(busy));
        return "done";
      });
      const pawl = await world.open([short]);
      const starting = pawl.start(short, undefined, { id: "r" });
      await turnRound(pause);
      await starting;
      const [outcome, result] = await Promise.all([
        pawl.cancel("r"),
        pawl
          .get("r")
          .result()
          .catch((error) => error["code"]),
      ]);
      const [end] = (await world.journal("r")).slice(-1);
      ends.add(end as string);
      expect(result).toBe(end === "run.succeeded" ? "done" : "cancelled");
      if (end === "run.succeeded") expect(outcome).toEqual({ outcome: "succeeded" });
      else expect(outcome.outcome).toMatch(/cancel/);
    }
    expect(ends).toEqual(new Set(["run.succeeded", "run.cancelled"]));
  });

  it("P19 turns a finished body into a cancelled run if the cancel was accepted first", async () => {
    const world = await openWorld(store);
    const short = workflow("short", async (ctx) => {
      await ctx.step("last", () => 1);
      return "done";
    });
    // The cancel is in the store, but nobody has told the worker when the end of the run is on its way.
    let cancels = 0;
    const commit: Store["commit"] = async (batch) => {
      const end = batch.runs.find((part) => part.entries.some(({ type }) => type === "run.succeeded"));
      if (end !== undefined && cancels++ === 0)
        await world.store.deliver({ to: end.run, id: "c", kind: "cancel", name: "", data: "" });
      return world.store.commit(batch);
    };
    const run = await (await openOn(world.store, { commit }, [short])).start(short);
    expect(await errorOf(run.result())).toMatchObject({ code: "cancelled" });
    await expectCancelled(world, run.id);
    expect((await world.journal(run)).slice(-3)).toEqual(["step.completed last", "run.cancelling", "run.cancelled"]);
  });

  it("I16 starts no step after the cancel is recorded, also when steps were about to", async () => {
    const world = await openWorld(store);
    const started: string[] = [];
    const first = gate();
    const eager = workflow("eager", async (ctx) => {
      await ctx.step("first", () => first.passed).catch(() => {});
      await Promise.allSettled(["a", "b"].map((name) => ctx.step(name, () => started.push(name))));
    });
    const pawl = await world.open([eager]);
    const run = await pawl.start(eager);
    await world.settle();
    await run.cancel();
    first.open();
    await world.settle();
    await expectCancelled(world, run.id);
    expect(started).toEqual([]);
  });

  it("P19 replays a cancel that a crash interrupted, and ends cancelled", async () => {
    const world = await openWorld(store);
    const cleaning = gate();
    const cleaned: number[] = [];
    const tidy = workflow("tidy", async (ctx) => {
      try {
        await ctx.sleep("1 day");
      } finally {
        cleaned.push(1);
        await cleaning.passed;
      }
    });
    const first = await world.open([tidy]);
    await first.start(tidy, undefined, { id: "r" });
    await world.settle();
    expect(await first.cancel("r")).toEqual({ outcome: "cancelling" });
    const pawl = await world.restart([tidy]);
    cleaning.open();
    expect(await errorOf(pawl.get("r").result())).toMatchObject({ code: "cancelled" });
    expect(cleaned.length).toBeGreaterThan(0);
    await expectCancelled(world, "r");
  });
});

describe.each(STORES)("deadlines on %s", (store) => {
  it("E-8 S1-59 end a run at an absolute instant that restarts do not move", async () => {
    const world = await openWorld(store);
    const long = workflow({ name: "long", deadline: "10h" }, async (ctx) => {
      const left = (ctx.run.deadline?.getTime() ?? 0) - ctx.now();
      await ctx.sleep("5 days");
      return left;
    });
    const start = world.clock.now();
    await (await world.open([long])).start(long, undefined, { id: "r" });
    await world.advance(5 * HOUR);
    const pawl = await world.restart([long]);
    await world.advance(5 * HOUR - 1);
    expect((await pawl.get("r").status()).status).toBe("waiting");
    await world.advance(1);
    expect(await errorOf(pawl.get("r").result())).toMatchObject({ code: "deadline_exceeded" });
    expect(await world.store.run("r")).toMatchObject({
      state: "failed",
      stopReason: "deadline_exceeded",
      endedAt: start + 10 * HOUR,
    });
  });

  it("E-8 abort a step that runs over it, and drop its result", async () => {
    const world = await openWorld(store);
    const late = gate<string>();
    const signals: AbortSignal[] = [];
    const long = workflow("long", async (ctx) =>
      ctx.step(
        "work",
        ({ signal }) => {
          signals.push(signal);
          return late.passed;
        },
        { timeout: "2 days" },
      ),
    );
    const run = await (await world.open([long])).start(long, undefined, { deadline: "1 day" });
    await world.advance(DAY);
    expect(await errorOf(run.result())).toMatchObject({ code: "deadline_exceeded" });
    await world.settle();
    expect(signals[0]?.aborted).toBe(true);
    late.open("late");
    await world.settle();
    expect((await world.journal(run)).at(-1)).toBe("run.failed");
  });

  it("E-8 start no step that comes after one that ran over it", async () => {
    const world = await openWorld(store);
    const started: string[] = [];
    const over = workflow({ name: "over", deadline: "1 h", timeout: "1 day" }, async (ctx) => {
      // Over the deadline within one turn of the loop: nobody is there to notice before the step has returned.
      await ctx.step("a", () => world.clock.step(2 * HOUR));
      await ctx.step("b", () => started.push("b"));
    });
    const run = await (await world.open([over])).start(over);
    await world.settle();
    expect(started).toEqual([]);
    expect(await errorOf(run.result())).toMatchObject({ code: "deadline_exceeded" });
    expect(await world.journal(run)).toEqual(["run.started", "step.started a", "run.cancelling", "run.failed"]);
  });

  it("E-8 start no step of a run that is past its deadline when it is first claimed", async () => {
    const world = await openWorld(store);
    const started: string[] = [];
    const short = workflow({ name: "short", deadline: "1h" }, async (ctx) =>
      ctx.step("s", () => void started.push("s")),
    );
    const client = await world.open();
    const run = await client.start(short);
    await world.advance(2 * HOUR);
    const pawl = await world.open([short]);
    await pawl.idle();
    expect(await errorOf(run.result())).toMatchObject({ code: "deadline_exceeded" });
    expect(started).toEqual([]);
  });

  it("E-8 take a date, a duration of the start, or the default of 14 days", async () => {
    const world = await openWorld(store);
    const patient = workflow("patient", async (ctx) => ctx.waitFor("go"));
    const pawl = await world.open([patient]);
    const now = world.clock.now();
    const deadlineOf = async (deadline?: Date | string) =>
      (await (await pawl.start(patient, undefined, deadline === undefined ? {} : { deadline })).status()).deadline;
    expect(await deadlineOf()).toEqual(new Date(now + 14 * DAY));
    expect(await deadlineOf("2h")).toEqual(new Date(now + 2 * HOUR));
    expect(await deadlineOf(new Date(now + 5))).toEqual(new Date(now + 5));
    await world.advance(14 * DAY);
    expect((await pawl.list({ status: "failed" })).runs).toHaveLength(3);
  });
});
