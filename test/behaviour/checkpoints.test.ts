// What a step saves on its way, and what its later attempts are given.
import { describe, expect, it, vi } from "vitest";
import { PawlError } from "../../src/base/errors.ts";
import type { Commit } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, HOUR, nextRound, openWorld, STORES, type World } from "./harness.ts";

const never = () => new Promise<never>(() => {});
const RETRY = { jitter: false, on: "any" } as const;

/** The values of a run's checkpoints, with the keys of their steps. */
async function checkpoints(world: World, run: string): Promise<unknown[]> {
  const pawl = await world.open();
  const journal = await pawl.get(run).journal();
  return journal.filter(({ type }) => type === "checkpoint").map(({ key, payload }) => [key, payload]);
}

describe.each(STORES)("a checkpoint on %s", (store) => {
  it("P13 is in the store when save() resolves, and is what an attempt after a crash begins with", async () => {
    const world = await openWorld(store);
    const begunWith: unknown[] = [];
    const durable: unknown[] = [];
    const agent = workflow("agent", async (ctx) =>
      ctx.step("work", async ({ save, saved, attempt }) => {
        begunWith.push(saved);
        const done = (saved as { done: number } | undefined)?.done ?? 0;
        for (let n = done + 1; n <= 3; n++) {
          await save({ done: n, at: new Date(n) });
          durable.push((await world.store.journal("r")).filter(({ type }) => type === "checkpoint").length);
          if (n === 2 && attempt === 1) return never();
        }
        return `finished by ${attempt}`;
      }),
    );
    await (await world.open([agent])).start(agent, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([agent]);
    expect(await pawl.get("r").result()).toBe("finished by 2");
    expect(begunWith).toEqual([undefined, { done: 2, at: new Date(2) }]);
    expect(durable).toEqual([1, 2, 3]);
    expect(await checkpoints(world, "r")).toEqual([
      ["work", { attempt: 1, value: { done: 1, at: new Date(1) } }],
      ["work", { attempt: 1, value: { done: 2, at: new Date(2) } }],
      ["work", { attempt: 2, value: { done: 3, at: new Date(3) } }],
    ]);
  });

  it("S4-6 P7 is a copy of its moment, decoded anew for every attempt, and not seen by the attempt that saves it", async () => {
    const world = await openWorld(store);
    const seen: unknown[] = [];
    const failing = workflow({ name: "failing", retry: RETRY }, async (ctx) =>
      ctx.step("s", async (info) => {
        const mine = (info.saved ?? { list: [] }) as { list: string[] };
        seen.push(structuredClone(mine.list));
        if (info.attempt === 1) {
          const value = { list: ["first"] };
          const saving = info.save(value);
          value.list.push("too late");
          await saving;
          expect(info.saved).toBeUndefined();
        }
        mine.list.push("only mine");
        expect(info.saved === undefined || info.saved === mine).toBe(true);
        if (info.attempt < 3) throw new Error("again");
        return "done";
      }),
    );
    const pawl = await world.open([failing]);
    const run = await pawl.start(failing, undefined, { id: "r" });
    await world.advance(HOUR);
    expect(await run.result()).toBe("done");
    expect(seen).toEqual([[], ["first"], ["first"]]);
  });

  it("A2 is refused to an attempt that ran out of time; its step goes on from what it saved before", async () => {
    const world = await openWorld(store);
    const late = gate();
    const refusals: unknown[] = [];
    const begunWith: unknown[] = [];
    const slow = workflow({ name: "slow", retry: RETRY, timeout: "5s" }, async (ctx) =>
      ctx.step("s", async ({ save, saved, attempt }) => {
        begunWith.push(saved);
        if (attempt === 2) return "done";
        await save("in time");
        await late.passed;
        await save("too late").catch((error: unknown) => refusals.push(error));
        return "ignored";
      }),
    );
    const pawl = await world.open([slow]);
    const run = await pawl.start(slow, undefined, { id: "r" });
    await world.advance(5000);
    late.open();
    await world.advance(HOUR);
    expect(await run.result()).toBe("done");
    expect(begunWith).toEqual([undefined, "in time"]);
    expect(refusals).toEqual([
      expect.objectContaining({
        code: "attempt_over",
        fields: { run: "r", step: "s", attempt: 1 },
        cause: expect.objectContaining({ code: "step_timeout" }),
      }),
    ]);
    expect(await checkpoints(world, "r")).toEqual([["s", { attempt: 1, value: "in time" }]]);
  });

  it("S3-21 counts as a heartbeat", async () => {
    const world = await openWorld(store);
    const ticks = Array.from({ length: 4 }, () => gate());
    const long = workflow({ name: "long", retry: false, timeout: "5s" }, async (ctx) =>
      ctx.step("s", async ({ save }) => {
        for (const [n, tick] of ticks.entries()) {
          await tick.passed;
          await save(n);
        }
        return "done";
      }),
    );
    const run = await (await world.open([long])).start(long, undefined, { id: "r" });
    for (const tick of ticks) {
      await world.advance(4000);
      tick.open();
      await world.settle();
    }
    expect(await run.result()).toBe("done");
  });

  it("refuses what cannot be recorded, with the path; nothing is written, and the step goes on", async () => {
    const world = await openWorld(store);
    const refusals: unknown[] = [];
    const odd = workflow("odd", async (ctx) =>
      ctx.step("s", async ({ save }) => {
        await save({ send: () => {} }).catch((error: unknown) => refusals.push(error));
        // Nobody looks at this one: it must not end the process.
        void save(Symbol("odd"));
        return "done";
      }),
    );
    const run = await (await world.open([odd])).start(odd, undefined, { id: "r" });
    expect(await run.result()).toBe("done");
    expect(refusals).toEqual([
      expect.objectContaining({ code: "not_serializable", message: expect.stringContaining('step "s".value.send') }),
    ]);
    expect(await checkpoints(world, "r")).toEqual([]);
  });

  it.each(["run.succeeded", "run.cancelling"])(
    "P12 P19 does not join after %s, not even before that is durable",
    async (type) => {
      const world = await openWorld(store);
      const [go, cleanedUp] = [gate(), gate()];
      const refusals: unknown[] = [];
      const commit = world.store.commit.bind(world.store);
      vi.spyOn(world.store, "commit").mockImplementation(async (batch: Commit) => {
        if (batch.runs.some(({ entries }) => entries.some((entry) => entry.type === type))) {
          go.open();
          for (let round = 0; round < 20; round++) await nextRound();
        }
        return commit(batch);
      });
      const raced = workflow("raced", async (ctx) => {
        const loser = ctx.step("loser", async ({ save }) => {
          await save(1);
          await go.passed;
          await save(2).catch((error: unknown) => refusals.push(error));
        });
        return Promise.race([loser, ctx.waitFor("stop")]).catch(async (error: unknown) => {
          // The run goes on for a while after its cancel.
          await cleanedUp.passed;
          throw error;
        });
      });
      const pawl = await world.open([raced]);
      const run = await pawl.start(raced, undefined, { id: "r" });
      await world.settle();
      if (type === "run.cancelling") await pawl.cancel("r");
      else await pawl.signal("r", "stop", "stopped");
      await world.settle();
      cleanedUp.open();
      await run.result().catch(() => {});
      expect(refusals).toEqual([
        expect.objectContaining({ code: "attempt_over", fields: { run: "r", step: "loser", attempt: 1 } }),
      ]);
      expect(await checkpoints(world, "r")).toEqual([["loser", { attempt: 1, value: 1 }]]);
    },
  );

  it("P6 belongs to one step: items of a map and other uses of a name have their own", async () => {
    const world = await openWorld(store);
    const begunWith: string[] = [];
    let isSecond = false;
    const many = workflow("many", async (ctx) => {
      const one = (item: string) =>
        ctx.step("s", async ({ save, saved, key }) => {
          if (isSecond) begunWith.push(`${key.slice("r/".length)} ${String(saved)}`);
          else await save(item);
          return isSecond ? item : never();
        });
      return Promise.all([ctx.map(["a", "b"], one), one("c"), one("d")]);
    });
    await (await world.open([many])).start(many, undefined, { id: "r" });
    await world.settle();
    isSecond = true;
    const pawl = await world.restart([many]);
    await pawl.get("r").result();
    expect(begunWith.sort()).toEqual(["map/0/s a", "map/1/s b", "s c", "s#2 d"]);
  });

  it("works for an effect, which looks for what it did first, and for its undo", async () => {
    const world = await openWorld(store);
    const steps: string[] = [];
    let isSecond = false;
    const acting = workflow({ name: "acting", retry: { jitter: false } }, async (ctx) => {
      await ctx.effect("upload", {
        async do({ save, saved }) {
          steps.push(`do from ${String(saved)}`);
          await save("half");
          return isSecond ? "uploaded" : never();
        },
        detect: ({ saved }) => {
          steps.push(`detect from ${String(saved)}`);
          return { found: false };
        },
        async undo(_, { save, saved, attempt }) {
          steps.push(`undo ${attempt} from ${String(saved)}`);
          await save("undone half");
          if (attempt === 1) throw new Error("again");
        },
      });
      throw new Error("fails");
    });
    await (await world.open([acting])).start(acting, undefined, { id: "r" });
    await world.settle();
    isSecond = true;
    const pawl = await world.restart([acting]);
    await world.advance(HOUR);
    await errorOf(pawl.get("r").result());
    expect(steps).toEqual([
      "do from undefined",
      "detect from half",
      "do from half",
      "undo 1 from undefined",
      "undo 2 from undone half",
    ]);
  });

  it("P10 stays with its generation: nothing is carried over by continueAs", async () => {
    const world = await openWorld(store);
    const begunWith: unknown[] = [];
    const loop = workflow("loop", async (ctx, round: number) => {
      await ctx.step("s", async ({ save, saved }) => {
        begunWith.push(saved);
        await save(round);
      });
      if (round < 2) return ctx.continueAs(round + 1);
      await ctx.step("hang", ({ attempt }) => (attempt === 1 ? never() : "over"));
      return "done";
    });
    await (await world.open([loop])).start(loop, 1, { id: "r" });
    await world.settle();
    const pawl = await world.restart([loop]);
    expect(await pawl.get("r").result()).toBe("done");
    expect(begunWith).toEqual([undefined, undefined]);
  });

  it("S2-59 P10 goes with a retry, and with a fork from behind it; not with a fork from before it", async () => {
    const world = await openWorld(store);
    const begunWith: string[] = [];
    let isFixed = false;
    const flow = workflow({ name: "flow", retry: false }, async (ctx) =>
      ctx.step("s", async ({ save, saved }) => {
        begunWith.push(String(saved));
        if (isFixed) return `from ${String(saved)}`;
        await save("one");
        await save("two");
        throw new Error("broken");
      }),
    );
    const pawl = await world.open([flow]);
    await errorOf((await pawl.start(flow, undefined, { id: "r" })).result());
    isFixed = true;
    expect(await (await pawl.retry("r")).result()).toBe("from two");
    expect(await world.journal("r")).toEqual([
      "run.started",
      "step.started s",
      "checkpoint s",
      "checkpoint s",
      "step.failed s",
      "run.failed",
    ]);
    for (const at of [4, 3, 2, "s"]) await (await pawl.fork("r", { at })).result();
    expect(begunWith).toEqual(["undefined", "two", "two", "one", "undefined", "undefined"]);
  });

  it("P28 is progress: who saves before each death is not parked, and lets the next suspect begin", async () => {
    const world = await openWorld(store);
    const poll = "1 hour";
    const begun: string[] = [];
    const holds = [gate(), gate()];
    const unlucky = workflow("unlucky", async (ctx) =>
      ctx.step("s", async ({ save, saved = 0 }) => {
        const n = Number(saved);
        if (n === 9) return "done";
        await save(n + 1);
        return never();
      }),
    );
    const risky = workflow("risky", async (ctx) =>
      ctx.step("s", async ({ attempt, save }) => {
        if (attempt < 3) return never();
        begun.push(ctx.run.id);
        await holds[begun.length - 1]?.passed;
        await save("alive");
        return never();
      }),
    );
    let pawl = await world.open([unlucky]);
    await pawl.start(unlucky, undefined, { id: "r" });
    for (let deaths = 0; deaths < 9; deaths++) {
      await world.settle();
      pawl = await world.restart([unlucky]);
    }
    expect(await pawl.get("r").result()).toBe("done");

    await world
      .restart([risky])
      .then((first) => Promise.all(["x", "y"].map((id) => first.start(risky, undefined, { id }))));
    await world.settle();
    await world.restart([risky]);
    await world.settle();
    await world.restart([risky], { poll });
    await world.settle();
    expect(begun).toEqual(["x"]);
    holds[0]?.open();
    await world.settle();
    expect(begun).toEqual(["x", "y"]);
    expect(await world.store.run("x")).toMatchObject({ claims: 0 });
    expect(await world.store.run("y")).toMatchObject({ claims: 3 });
  });

  it("P28 writes the run's row at most once a stay in memory", async () => {
    const world = await openWorld(store);
    const rows: unknown[] = [];
    const commit = world.store.commit.bind(world.store);
    vi.spyOn(world.store, "commit").mockImplementation((batch: Commit) => {
      for (const { entries, row } of batch.runs)
        if (entries.some(({ type }) => type === "checkpoint")) rows.push(row?.claims);
      return commit(batch);
    });
    const saving = workflow("saving", async (ctx) => {
      for (const name of ["a", "b"])
        await ctx.step(name, async ({ save }) => {
          await save(1);
          await save(2);
        });
    });
    const run = await (await world.open([saving])).start(saving);
    await run.result();
    expect(rows).toEqual([0, undefined, undefined, undefined]);
  });

  it("is written while its process drains, and the next one goes on from it", async () => {
    const world = await openWorld(store);
    const go = gate();
    const begunWith: unknown[] = [];
    const draining = workflow("draining", async (ctx) => {
      await ctx.step("s", async ({ save }) => {
        await go.passed;
        for (let n = 0; n < 5; n++) await save(n);
      });
      return ctx.step("t", ({ saved }) => begunWith.push(saved));
    });
    const first = await world.open([draining]);
    await first.start(draining, undefined, { id: "r" });
    await world.settle();
    const closing = first.close();
    go.open();
    await closing;
    expect(await world.journal("r")).toEqual([
      "run.started",
      "step.started s",
      ...Array.from({ length: 5 }, () => "checkpoint s"),
      "step.completed s",
    ]);
    await (await world.open([draining])).get("r").result();
    expect(begunWith).toEqual([undefined]);
  });

  it("C-3 is there for a step that a person has run again, and in lenient replay", async () => {
    const world = await openWorld(store);
    const asking = workflow({ name: "asking", onMissing: "execute" }, async (ctx) =>
      ctx.step(
        "s",
        async ({ save, saved }) => {
          if (saved !== undefined) return saved;
          await save("older");
          await save("newest");
          return never();
        },
        { recovery: "ask" },
      ),
    );
    await (await world.open([asking])).start(asking, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([asking]);
    await pawl.idle();
    await pawl.resolve("r", "rerun");
    expect(await pawl.get("r").result()).toBe("newest");
  });

  it("P17 survives a lost answer: save() resolves once the store is seen to have it, or has been given it again", async () => {
    const world = await openWorld(store);
    const commit = world.store.commit.bind(world.store);
    const faults = ["applied", "not applied"];
    vi.spyOn(world.store, "commit").mockImplementation(async (batch: Commit) => {
      const isCheckpoint = batch.runs.some(({ entries }) => entries.some(({ type }) => type === "checkpoint"));
      const fault = isCheckpoint ? faults.shift() : undefined;
      if (fault !== "not applied") {
        const verdicts = await commit(batch);
        if (fault === undefined) return verdicts;
      }
      throw new PawlError("unknown_outcome", "The answer was lost.");
    });
    const attempts: number[] = [];
    const saving = workflow("saving", async (ctx) =>
      ctx.step("s", async ({ save, attempt }) => {
        attempts.push(attempt);
        await save(1);
        await save(2);
        return "done";
      }),
    );
    const run = await (await world.open([saving])).start(saving, undefined, { id: "r" });
    expect(await run.result()).toBe("done");
    expect(attempts).toEqual([1]);
    expect(faults).toEqual([]);
    expect(await checkpoints(world, "r")).toEqual([
      ["s", { attempt: 1, value: 1 }],
      ["s", { attempt: 1, value: 2 }],
    ]);
  });

  it("P14 P17 rejects what is pending when the run is lost, saying that nobody knows; the owner goes on from the journal", async () => {
    const world = await openWorld(store);
    const refusals: { code: string; signalled: boolean }[] = [];
    const make = (isFirst: boolean) =>
      workflow("split", async (ctx) =>
        ctx.step("s", async ({ save, saved, signal }) => {
          if (!isFirst) return `from ${String(saved)}`;
          await save(1);
          isCut = true;
          await save(2).catch((error: PawlError) => refusals.push({ code: error.code, signalled: signal.aborted }));
          return never();
        }),
      );
    let isCut = false;
    const commit = world.store.commit.bind(world.store);
    const held = gate();
    vi.spyOn(world.store, "commit").mockImplementation(async (batch: Commit) => {
      if (isCut) {
        isCut = false;
        // Somebody else has fenced it before its commit arrives.
        await world.store.fence({ workers: [batch.worker as string] });
        const second = make(false);
        expect(await (await world.open([second])).get("r").result()).toBe("from 1");
        held.open();
      }
      return commit(batch);
    });
    const first = make(true);
    await (await world.open([first])).start(first, undefined, { id: "r" });
    await held.passed;
    await world.settle();
    expect(refusals).toEqual([{ code: "unknown_outcome", signalled: true }]);
    expect(await checkpoints(world, "r")).toEqual([["s", { attempt: 1, value: 1 }]]);
  });
});
