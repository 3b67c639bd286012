import { describe, expect, it } from "vitest";
import { RetryableError } from "../../src/base/errors.ts";
import type { Context, Log, StepInfo } from "../../src/core/context.ts";
import type { RunRow, Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { openOn, rounds, silent } from "../attacks/rig.ts";
import { DAY, errorOf, gate, HOUR, openWorld, STORES } from "./harness.ts";

describe.each(STORES)("time and chance on %s", (store) => {
  it("P7 S3-15 gives the same time, numbers and ids on every pass, and no entry for them", async () => {
    const world = await openWorld(store);
    const passes: unknown[][] = [];
    const drawing = workflow("drawing", async (ctx) => {
      const drawn: unknown[] = [];
      const draw = () => drawn.push(ctx.now(), ctx.random(), ctx.uuid());
      draw();
      await ctx.step("a", () => 1);
      draw();
      await ctx.sleep("1h");
      draw();
      await ctx.waitFor("go");
      draw();
      passes.push(drawn);
      return drawn;
    });
    const run = await (await world.open([drawing])).start(drawing, undefined, { id: "r" });
    await world.advance(HOUR);
    await run.signal("go");
    await world.advance(5 * DAY);
    expect(await world.journal("r")).toHaveLength(8);
    expect(passes).toHaveLength(1);
    const fork = await (await world.restart([drawing])).fork("r", { at: 7 });
    await fork.result();
    // Up to its last recorded outcome the fork replays the very same values.
    expect(passes[1]?.slice(0, 9)).toEqual(passes[0]?.slice(0, 9));
    // Two moments, and eight draws that are all different.
    expect(new Set(passes[0]).size).toBe(10);
  });

  it("S3-16 B58 lets the body's clock move by journal entries only, also after a race", async () => {
    const world = await openWorld(store);
    const ways: string[] = [];
    const deciding = workflow("deciding", async (ctx) => {
      const from = ctx.now();
      await Promise.race([ctx.sleep("1h"), ctx.waitFor("never")]);
      const way = ctx.now() - from > 2 * HOUR ? "late" : "on time";
      ways.push(way);
      await ctx.step(way, () => 1);
      await ctx.waitFor("go");
      return way;
    });
    await (await world.open([deciding])).start(deciding, undefined, { id: "r" });
    await world.advance(HOUR);
    await world.advance(10 * DAY);
    const pawl = await world.restart([deciding]);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toBe("on time");
    expect(new Set(ways)).toEqual(new Set(["on time"]));
    expect(ways.length).toBeGreaterThan(1);
  });

  it("S3-16 records a hazard that is moved into a step", async () => {
    const world = await openWorld(store);
    const dated = workflow("dated", async (ctx) => {
      const today = await ctx.step("today", () => new Date(world.clock.now()));
      await ctx.waitFor("go");
      return today;
    });
    const day = new Date(world.clock.now());
    await (await world.open([dated])).start(dated, undefined, { id: "r" });
    await world.advance(DAY);
    const pawl = await world.restart([dated]);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toEqual(day);
  });

  it("P7 gives a step a stream of its own per key and attempt, and the body's is not touched by it", async () => {
    const world = await openWorld(store);
    const drawn: Record<string, unknown> = {};
    const body: number[] = [];
    const drawing = workflow(
      { name: "drawing", retry: { max: 1, jitter: false, on: "any" } },
      async (ctx, inSteps: boolean) => {
        const first = ctx.random();
        await ctx.step("a", ({ attempt }) => {
          if (inSteps) drawn[`a ${attempt}`] = [ctx.random(), ctx.uuid()];
          if (attempt === 1) throw new Error("again");
        });
        await ctx.step("b", () => {
          if (inSteps) drawn["b"] = [ctx.random(), ctx.uuid()];
        });
        body.push(first, ctx.random());
      },
    );
    const pawl = await world.open([drawing]);
    const run = await pawl.start(drawing, true);
    await world.advance(HOUR);
    await run.result();
    expect(new Set(Object.values(drawn).flat()).size).toBe(6);
    expect(new Set([...Object.values(drawn).flat(), ...body]).size).toBe(8);
  });

  it("P7 draws the chance of a step from its run, key and attempt alone", async () => {
    const world = await openWorld(store);
    const drawing = workflow({ name: "drawing", retry: { jitter: false } }, async (ctx, _: number) => {
      const draw = (info: StepInfo) => {
        if (info.attempt === 1) throw new RetryableError("again");
        return [info.attempt, ctx.random(), ctx.uuid(), ctx.random()];
      };
      return [await ctx.step("s", draw), await ctx.step("s", draw)];
    });
    const pawl = await world.open([drawing]);
    const draws = async (id: string, input: number) => {
      const run = await pawl.start(drawing, input, { id });
      await world.advance(HOUR);
      const result = await run.result();
      await world.store.purge({ succeededBefore: world.clock.now() + 1, failedBefore: 0, limit: 10 });
      return result;
    };
    const first = await draws("same", 1);
    expect(await draws("same", 2)).toEqual(first);
    expect(await draws("other", 1)).not.toEqual(first);
    expect(first[0]).not.toEqual(first[1]);
  });

  it("P7 gives a rerun after a crash the stream of its own attempt", async () => {
    const world = await openWorld(store);
    const drawn: [number, string][] = [];
    const hang = gate();
    const drawing = workflow("drawing", async (ctx) =>
      ctx.step("a", ({ attempt }) => {
        drawn.push([attempt, ctx.uuid()]);
        return attempt === 1 ? hang.passed : undefined;
      }),
    );
    await (await world.open([drawing])).start(drawing, undefined, { id: "r" });
    await world.settle();
    await (await world.restart([drawing])).get("r").result();
    expect(drawn.map(([attempt]) => attempt)).toEqual([1, 2]);
    expect(drawn[0]?.[1]).not.toBe(drawn[1]?.[1]);
  });

  it("B60 does not let reads touch the run's chance", async () => {
    const world = await openWorld(store);
    const drawn: number[][] = [];
    const drawing = workflow("drawing", async (ctx) => {
      const before = ctx.random();
      await ctx.waitFor("go");
      drawn.push([before, ctx.random()]);
    });
    const pawl = await world.open([drawing]);
    const draw = async (look: boolean) => {
      const run = await pawl.start(drawing, undefined, { id: "same" });
      await world.settle();
      if (look) for (let i = 0; i < 5; i++) await Promise.all([run.status(), run.journal(), pawl.list()]);
      await run.signal("go");
      await run.result();
      await world.store.purge({ succeededBefore: world.clock.now() + 1, failedBefore: 0, limit: 10 });
    };
    await draw(false);
    await draw(true);
    expect(drawn).toHaveLength(2);
    expect(drawn[1]).toEqual(drawn[0]);
  });
});

describe.each(STORES)("what a run says of itself on %s", (store) => {
  it("P9 P13 keeps state, cost and notes once, whatever the number of replays", async () => {
    const world = await openWorld(store);
    const telling = workflow("telling", async (ctx) => {
      ctx.set("stage", { at: new Date(0), n: 1 });
      ctx.note("begun");
      ctx.cost({ usd: 0.5, tokens: 100 });
      await ctx.step("a", () => 1);
      ctx.set("stage", { at: new Date(1), n: 2 });
      ctx.cost({ tokens: 20 });
      await ctx.waitFor("go");
      ctx.cost({ usd: 1 });
      return ctx.get("stage");
    });
    const first = await world.open([telling]);
    await first.start(telling, undefined, { id: "r" });
    await world.settle();
    expect(await first.get("r").status()).toMatchObject({
      data: { stage: { at: new Date(1), n: 2 } },
      cost: { usd: 0.5, tokens: 120 },
    });
    await world.restart([telling]);
    await world.settle();
    const pawl = await world.restart([telling]);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toEqual({ at: new Date(1), n: 2 });
    expect((await pawl.get("r").status()).cost).toEqual({ usd: 1.5, tokens: 120 });
    const notes = (await world.journal("r")).filter((line) => /^(note|cost|state)/.test(line));
    expect(notes).toEqual(["state.patched stage", "note", "cost", "state.patched stage", "cost", "cost"]);
  });

  it("P9 ignores what new code says in turns that older code has recorded: the row stays the sum of the journal", async () => {
    const world = await openWorld(store);
    const told = (isNew: boolean) =>
      workflow({ name: "told", version: isNew ? "1.0.1" : "1.0.0" }, async (ctx) => {
        if (isNew) {
          ctx.cost({ usd: 100 });
          ctx.note("new");
          ctx.set("new", true);
        }
        await ctx.step("a", () => 1);
        await ctx.waitFor("go");
        ctx.cost({ usd: 1 });
      });
    await (await world.open([told(false)])).start(told(false), undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([told(true)]);
    await pawl.signal("r", "go");
    await pawl.get("r").result();
    expect((await pawl.get("r").status()).cost).toEqual({ usd: 1 });
    expect((await world.journal("r")).filter((line) => /^(note|cost|state)/.test(line))).toEqual(["cost"]);
  });

  it("P9 refuses state that cannot be recorded, on every pass alike", async () => {
    const world = await openWorld(store);
    const trying = workflow("trying", async (ctx) => {
      let way = "stored";
      try {
        ctx.set("fn", (() => 1) as unknown);
      } catch {
        way = "refused";
      }
      await ctx.step(way, () => 1);
      await ctx.waitFor("go");
      return [way, ctx.get("fn")];
    });
    await (await world.open([trying])).start(trying, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([trying]);
    await pawl.signal("r", "go");
    await world.settle();
    expect(await pawl.get("r").status()).toMatchObject({ status: "succeeded", output: ["refused", undefined] });
  });

  it("P9 gives back state as it was recorded, not as it was changed afterwards", async () => {
    const world = await openWorld(store);
    const changing = workflow("changing", async (ctx, n: number): Promise<unknown> => {
      const value = { list: [1] };
      if (n === 1) {
        ctx.set("value", value);
        value.list.push(2);
        return [ctx.get("value"), await ctx.step("read", async () => (await ctx.run.id) && 1)];
      }
      return null;
    });
    const pawl = await world.open([changing]);
    const run = await pawl.start(changing, 1);
    const [seen] = (await run.result()) as [unknown];
    expect((await run.status()).data).toEqual({ value: seen });
  });

  it("P13 writes a log line and starts a step only when what led to them is durable", async () => {
    const world = await openWorld(store);
    const done: string[] = [];
    const logging = workflow("logging", async (ctx) => {
      await ctx.step("a", () => 1);
      ctx.log.info("after a");
      await ctx.step("b", () => done.push("b"));
    });
    const hold = gate();
    const logger: Log = { ...silent, info: (message, fields) => fields?.["event"] === undefined && done.push(message) };
    // The commit that holds the outcome of a is on its way, and not there yet.
    const commit: Store["commit"] = async (batch) => {
      if (batch.runs.some((part) => part.entries.some(({ type }) => type === "step.completed"))) await hold.passed;
      return world.store.commit(batch);
    };
    const pawl = await openOn(world.store, { commit }, [logging], { logger });
    const run = await pawl.start(logging);
    await rounds();
    expect(done).toEqual([]);
    hold.open();
    await run.result();
    expect(done).toEqual(["after a", "b"]);
  });

  it("X-14 logs once: silent in replay", async () => {
    const world = await openWorld(store);
    const durable: string[][] = [];
    const logging = workflow("logging", async (ctx) => {
      ctx.log.info("begun", { n: 1 });
      await ctx.step("a", () => 1);
      ctx.log.warn("after a");
      await ctx.waitFor("go");
      ctx.log.info("done");
    });
    const first = await world.open([logging]);
    await first.start(logging, undefined, { id: "r" });
    await world.settle();
    for (let i = 0; i < 2; i++) {
      await world.restart([logging]);
      await world.settle();
    }
    const pawl = await world.restart([logging]);
    await pawl.signal("r", "go");
    await pawl.get("r").result();
    await world.settle();
    durable.push(
      world.lines.filter((line) => line.fields["run"] === "r").map((line) => `${line.level} ${line.message}`),
    );
    expect(durable[0]).toEqual(["info begun", "warn after a", "info done"]);
    expect(world.lines.find((line) => line.message === "begun")?.fields).toEqual({ run: "r", n: 1 });
  });

  it("P13 shows progress while a step runs, without an entry", async () => {
    const world = await openWorld(store);
    const hold = gate();
    const working = workflow("working", async (ctx) => {
      ctx.progress({ stage: "first" });
      await ctx.step("a", () => 1);
      ctx.progress({ stage: "second" });
      await ctx.step("b", () => hold.passed);
    });
    const run = await (await world.open([working])).start(working);
    await world.settle();
    expect((await run.status()).progress).toEqual({ stage: "second" });
    hold.open();
    await run.result();
    expect(await world.journal(run)).toHaveLength(6);
  });

  it("P9 refuses costs that do not add up", async () => {
    const world = await openWorld(store);
    const costly = workflow("costly", async (ctx) => {
      const codes = [];
      for (const usd of [Number.NaN, Number.POSITIVE_INFINITY, "1" as never])
        codes.push((await errorOf((async () => ctx.cost({ usd }))()))["code"]);
      return codes;
    });
    const run = await (await world.open([costly])).start(costly);
    expect(await run.result()).toEqual(Array(3).fill("invalid_argument"));
    expect((await run.status()).cost).toBeUndefined();
  });

  it("P9 patched is true for runs that come to it with new code, false for those that passed it before, and stays so", async () => {
    const world = await openWorld(store);
    const ways: string[] = [];
    const make = (isNew: boolean) =>
      workflow({ name: "patching", version: isNew ? "1.0.1" : "1.0.0" }, async (ctx: Context) => {
        await ctx.step("a", () => 1);
        const way = isNew && ctx.patched("better") ? "new" : "old";
        ways.push(`${ctx.run.id} ${way}`);
        await ctx.step(way, () => 1);
        await ctx.waitFor("go");
        return way;
      });
    await (await world.open([make(false)])).start(make(false), undefined, { id: "before" });
    await world.settle();
    const second = await world.restart([make(true)]);
    await second.start(make(true), undefined, { id: "after" });
    await world.settle();
    const pawl = await world.restart([make(true)]);
    for (const [id, way] of [
      ["before", "old"],
      ["after", "new"],
    ] as const) {
      await pawl.signal(id, "go");
      expect(await pawl.get(id).result()).toBe(way);
    }
    expect(new Set(ways)).toEqual(new Set(["before old", "after new"]));
    expect((await world.journal("after")).filter((line) => line === "patched better")).toHaveLength(1);
  });

  it.each(["park", "execute"] as const)(
    "P9 patched answers by its own mark: another one in the same turn is neither taken nor shifted, onMissing %s",
    async (onMissing) => {
      const world = await openWorld(store);
      const answers: Record<string, boolean>[] = [];
      const make = (version: string, ids: readonly string[]) =>
        workflow({ name: "patching", version, onMissing }, async (ctx: Context) => {
          const answer = Object.fromEntries(ids.map((id) => [id, ctx.patched(id)]));
          answers.push(answer);
          await ctx.step(answer["y"] === true ? "new-y" : "old-y", () => 1);
          await ctx.waitFor("go");
          return answer["y"];
        });
      const second = make("1.0.1", ["y"]);
      await (await world.open([second])).start(second, undefined, { id: "r" });
      await world.settle();
      const third = make("1.0.2", ["x", "y"]);
      const pawl = await world.restart([third]);
      await pawl.signal("r", "go");
      expect(await pawl.get("r").result()).toBe(true);
      // Strict replay has gone past the place of x; lenient replay runs what is missing afresh.
      expect(answers).toEqual([{ y: true }, { x: onMissing === "execute", y: true }]);
      expect((await world.journal("r")).filter((line) => line === "patched y")).toHaveLength(1);
    },
  );

  it("P9 I5 patched says no for the rest of a turn in which it has said no, and yes again in later ones", async () => {
    const world = await openWorld(store);
    const make = (isNew: boolean) =>
      workflow({ name: "patching", version: isNew ? "1.0.1" : "1.0.0" }, async (ctx: Context) => {
        const isPatched = () => isNew && ctx.patched("better");
        const first = isPatched();
        const waited = ctx.waitFor(first ? "new" : "old");
        // Nothing is recorded behind this place.
        const second = isPatched();
        await waited;
        const third = isPatched();
        await ctx.waitFor("go");
        return [first, second, third];
      });
    await (await world.open([make(false)])).start(make(false), undefined, { id: "r" });
    await world.settle();
    await world.restart([make(true)]);
    await world.settle();
    await (await world.restart([make(true)])).signal("r", "old");
    await world.settle();
    const pawl = await world.restart([make(true)]);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toEqual([false, false, true]);
    expect((await world.journal("r")).filter((line) => line === "patched better")).toHaveLength(1);
  });

  it("P35 keeps where the journal ends whenever the row is written: with cost, progress and another version", async () => {
    const world = await openWorld(store);
    const costly = (version: string) =>
      workflow({ name: "costly", version }, async (ctx: Context) => {
        await ctx.step("a", () => 1);
        ctx.cost({ usd: 1 });
        await ctx.step("b", () => 1);
        ctx.progress("half");
        await ctx.step("c", () => new Promise<never>(() => {}));
      });
    const first = costly("1.0.0");
    await (await world.open([first])).start(first, undefined, { id: "r" });
    await world.settle();
    const expectHead = async (found: { entries: number; hash: string | undefined; row: Partial<RunRow> }) => {
      const row = await world.store.run("r");
      expect(row).toMatchObject({ ...found.row, head: found.entries, headHash: found.hash });
    };
    const journal = await world.store.journal("r");
    const last = journal.at(-1);
    expect(last).toMatchObject({ type: "step.started", key: "c" });
    await expectHead({ entries: journal.length, hash: last?.hash, row: { cost: '{"usd":1}' } });
    await world.restart([costly("1.0.1")]);
    await world.settle();
    const later = await world.store.journal("r");
    await expectHead({ entries: later.length, hash: later.at(-1)?.hash, row: { version: "1.0.1" } });
  });

  it("X-14 tells a body what run it is", async () => {
    const world = await openWorld(store);
    const facts = workflow({ name: "facts", version: "2.3.4" }, async (ctx) => ({ ...ctx.run }));
    const pawl = await world.open([facts]);
    const run = await pawl.start(facts, undefined, { key: "k", tags: ["t"] });
    const { traceId } = await run.status();
    expect(await run.result()).toEqual({
      id: run.id,
      workflow: "facts",
      version: "2.3.4",
      traceId,
      key: "k",
      tags: ["t"],
      attempt: 1,
      deadline: new Date(world.clock.now() + 14 * DAY),
      uses: {},
    });
  });
});
