import { describe, expect, it } from "vitest";
import { hasCode } from "../../src/base/errors.ts";
import type { Context } from "../../src/core/context.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, openWorld, STORES } from "./harness.ts";

describe.each(STORES)("steps on %s", (store) => {
  it("S3-3 takes a name and a function, or a named function and its arguments", async () => {
    const world = await openWorld(store);
    async function add(a: number, b: number) {
      return a + b;
    }
    const sums = workflow("sums", async (ctx, by: number) => {
      const one: number = await ctx.step("one", () => by);
      const two: number = await ctx.step(add, by, 2);
      return [one, two];
    });
    const pawl = await world.open([sums]);
    const run = await pawl.start(sums, 40);
    expect(await run.result()).toEqual([40, 42]);
    expect(await world.journal(run)).toEqual([
      "run.started",
      "step.started one",
      "step.completed one",
      "step.started add",
      "step.completed add",
      "run.succeeded",
    ]);
  });

  it("S3-2 refuses a second workflow of the same name and version", async () => {
    const world = await openWorld(store);
    const twin = () => workflow("twin", async () => 1);
    expect(await errorOf(world.open([twin(), twin()]))).toMatchObject({ code: "duplicate_workflow" });
  });

  it("S3-6 does not start a step before its mark is durable, nor go on before its outcome is in the journal", async () => {
    const world = await openWorld(store);
    const seen: string[][] = [];
    const look = (ctx: Context) => async () => void seen.push(await world.journal(ctx.run.id));
    const looking = workflow("looking", async (ctx) => {
      await ctx.step("a", look(ctx));
      await ctx.step("b", look(ctx));
    });
    await (await world.open([looking])).run(looking);
    expect(seen).toEqual([
      ["run.started", "step.started a"],
      ["run.started", "step.started a", "step.completed a", "step.started b"],
    ]);
  });

  it("S3-7 records identity, input, outcome, attempt and times", async () => {
    const world = await openWorld(store);
    const add = (a: number, b: number) => a + b;
    const recorded = workflow("recorded", async (ctx) => {
      await ctx.step(add, 1, 2);
      await ctx.step("fails", () => Promise.reject(new RangeError("no"))).catch(() => {});
    });
    const pawl = await world.open([recorded]);
    const run = await pawl.start(recorded);
    await run.result();
    const [, started, completed, , failed] = await run.journal();
    expect(started).toMatchObject({ seq: 1, type: "step.started", key: "add", at: world.clock.now() });
    expect(started?.payload).toMatchObject({ attempt: 1, input: [1, 2] });
    expect(completed).toMatchObject({ seq: 2, type: "step.completed", key: "add", payload: 3 });
    expect(failed).toMatchObject({ type: "step.failed", key: "fails", payload: { attempt: 1, retryAt: null } });
    expect(failed?.payload).toMatchObject({ error: { name: "RangeError", message: "no" } });
  });

  it("S3-7 records when a step began, when it ended, and what the run cost meanwhile", async () => {
    const world = await openWorld(store);
    const priced = workflow("priced", async (ctx) => {
      await ctx.step("work", () => world.clock.step(5000));
      ctx.cost({ usd: 0.5 });
      await ctx.step("more", () => 1);
    });
    const start = world.clock.now();
    const run = await (await world.open([priced])).start(priced);
    await run.result();
    const [, begun, ended, cost] = await run.journal();
    expect(begun).toMatchObject({ type: "step.started", key: "work", at: start });
    expect(ended).toMatchObject({ type: "step.completed", key: "work", at: start + 5000 });
    expect(cost).toMatchObject({ type: "cost", payload: { usd: 0.5 }, at: start + 5000 });
  });

  it("S3-4 S3-8 replays ordinary code: the body runs again, a step that has an outcome does not", async () => {
    const world = await openWorld(store);
    const count = { body: 0, steps: 0 };
    const count1 = () => {
      count.steps++;
      return count.steps;
    };
    const branching = workflow("branching", async (ctx, items: number[]) => {
      count.body++;
      let sum = 0;
      for (const item of items) if (item % 2 === 0) sum += await ctx.step("even", () => count1() && item);
      const both = await Promise.all([ctx.step("left", count1), ctx.step("right", count1)]);
      await ctx.waitFor("go");
      return { sum, both };
    });
    await (await world.open([branching])).start(branching, [1, 2, 3, 4], { id: "r" });
    await world.settle();
    expect(count).toEqual({ body: 1, steps: 4 });
    const pawl = await world.restart([branching]);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toEqual({ sum: 6, both: [3, 4] });
    expect(count).toEqual({ body: 2, steps: 4 });
  });

  it("S3-10 replays a final failure as the recorded error, without calling the step", async () => {
    const world = await openWorld(store);
    let calls = 0;
    const caught: unknown[] = [];
    const catching = workflow("catching", async (ctx) => {
      try {
        await ctx.step("fails", () => {
          calls++;
          throw new TypeError("first", { cause: new Error("deeper") });
        });
      } catch (error) {
        caught.push(error);
      }
      await ctx.waitFor("go");
      return (caught.at(-1) as Error).message;
    });
    await (await world.open([catching])).start(catching, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([catching]);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toBe("first");
    expect(calls).toBe(1);
    // Live and in replay the body sees the same: the decoded error, cause included.
    expect(caught).toHaveLength(2);
    for (const error of caught) {
      expect(error).toBeInstanceOf(TypeError);
      expect((error as Error).cause).toMatchObject({ message: "deeper" });
    }
  });

  it("S3-11 grows the journal with steps, not with lines", async () => {
    const world = await openWorld(store);
    const looping = workflow("looping", async (ctx) => {
      let sum = 0;
      for (let i = 0; i < 10_000; i++) sum += await Promise.resolve(1);
      return ctx.step("sum", () => sum);
    });
    const run = await (await world.open([looping])).start(looping);
    expect(await run.result()).toBe(10_000);
    expect(await world.journal(run)).toEqual([
      "run.started",
      "step.started sum",
      "step.completed sum",
      "run.succeeded",
    ]);
  });

  it("S3-12 gives parallel steps their own results after a restart, whatever order they finished in", async () => {
    const world = await openWorld(store);
    const gates = [gate(), gate(), gate()];
    let calls = 0;
    const parallel = workflow("parallel", async (ctx) => {
      const step = (i: number) =>
        ctx.step("part", async () => {
          calls++;
          await gates[i]?.passed;
          return i;
        });
      const order: number[] = [];
      const inOrder = async (i: number) => {
        const n = await step(i);
        order.push(n);
        return n;
      };
      const all = await Promise.all([0, 1, 2].map(inOrder));
      await ctx.waitFor("go");
      return { all, order };
    });
    await (await world.open([parallel])).start(parallel, undefined, { id: "r" });
    for (const i of [2, 0, 1]) {
      gates[i]?.open();
      await world.settle();
    }
    expect((await world.journal("r")).slice(1, -1)).toEqual([
      "step.started part",
      "step.started part#2",
      "step.started part#3",
      "step.completed part#3",
      "step.completed part",
      "step.completed part#2",
    ]);
    const pawl = await world.restart([parallel]);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toEqual({ all: [0, 1, 2], order: [2, 0, 1] });
    expect(calls).toBe(3);
  });

  it("I21 hands the body what a replay would: decoded values, in input, results and output", async () => {
    const world = await openWorld(store);
    const shared = { list: [1] };
    const seen: unknown[] = [];
    const decoding = workflow("decoding", async (ctx, input: { at: Date; list: number[] }) => {
      const value = await ctx.step("value", () => ({ map: new Map([[1n, new Set(["a"])]]), shared, none: undefined }));
      seen.push(input, value);
      return value;
    });
    const pawl = await world.open([decoding]);
    const given = { at: new Date(5), list: [1] };
    const output = await pawl.run(decoding, given);
    const [input, value] = seen as [typeof given, typeof output];
    expect(input).toEqual(given);
    expect(input).not.toBe(given);
    expect(value).toEqual({ map: new Map([[1n, new Set(["a"])]]), shared: { list: [1] }, none: undefined });
    expect(value.shared).not.toBe(shared);
    expect(output).toEqual(value);
    expect(output).not.toBe(value);
  });

  it("S3-13 E-18 refuses results that cannot be recorded, with the path to them, and records that", async () => {
    const world = await openWorld(store);
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    const refusing = workflow("refusing", async (ctx) => {
      const errors = [];
      errors.push(await errorOf(ctx.step("fn", () => ({ deep: [() => 1] }) as unknown)));
      errors.push(await errorOf(ctx.step("cycle", () => cyclic)));
      await ctx.waitFor("go");
      return errors.map((error) => [error["code"], error.message]);
    });
    await (await world.open([refusing])).start(refusing, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([refusing]);
    await pawl.signal("r", "go");
    const [fn, cycle] = (await pawl.get("r").result()) as [string[], string[]];
    expect(fn[0]).toBe("not_serializable");
    expect(fn[1]).toContain("deep[0]");
    expect(cycle[0]).toBe("not_serializable");
    expect((await world.journal("r")).filter((line) => line.startsWith("step.failed"))).toHaveLength(2);
  });

  it("I21 refuses arguments and outputs that cannot be recorded", async () => {
    const world = await openWorld(store);
    const named = (_: unknown) => 1;
    const refusing = workflow("refusing", async (ctx, which: string) => {
      if (which === "argument") return ctx.step(named, () => 1);
      return (() => 1) as unknown;
    });
    const pawl = await world.open([refusing]);
    expect(await errorOf(pawl.run(refusing, "argument"))).toMatchObject({ code: "not_serializable" });
    expect(await errorOf(pawl.run(refusing, "output"))).toMatchObject({ code: "not_serializable" });
    expect((await errorOf(pawl.start(refusing, (() => 1) as never))).message).toContain("input");
    expect((await pawl.list()).runs).toHaveLength(2);
  });
});

describe.each(STORES)("keys on %s", (store) => {
  it("P6 counts the uses of a name per kind, and takes a key of the caller's instead", async () => {
    const world = await openWorld(store);
    const keyed = workflow("keyed", async (ctx) => {
      const keys = [];
      for (let i = 0; i < 3; i++) keys.push(await ctx.step("pay", ({ key }) => key));
      keys.push(await ctx.step("pay", ({ key }) => key, { key: "order-7" }));
      await ctx.sleep(0);
      await ctx.sleep(0);
      return keys;
    });
    const run = await (await world.open([keyed])).start(keyed);
    await world.advance(0);
    const journal = await world.journal(run);
    const started = journal.filter((line) => /^(step.started|timer.set)/.test(line)).map((line) => line.split(" ")[1]);
    expect(started).toEqual(["pay", "pay#2", "pay#3", "order-7", "sleep", "sleep#2"]);
    // The key that outside systems see belongs to this run alone.
    expect(await run.result()).toEqual(["pay", "pay#2", "pay#3", "order-7"].map((key) => `${run.id}/${key}`));
  });

  it("P6 counts each kind by itself: a step, a wait and a child of one name do not count each other", async () => {
    const world = await openWorld(store);
    const go = workflow("go", async () => "child");
    const kinds = workflow("kinds", async (ctx) => {
      for (let i = 0; i < 2; i++) {
        await ctx.step("go", () => 1);
        await ctx.waitFor("go");
        await ctx.call(go);
      }
    });
    const run = await (await world.open([kinds, go])).start(kinds);
    for (let i = 0; i < 2; i++) await run.signal("go");
    await run.result();
    const calls = (await world.journal(run)).filter((line) =>
      /^(step.started|signal.awaited|child.started)/.test(line),
    );
    expect(calls).toEqual([
      "step.started go",
      "signal.awaited go",
      "child.started go",
      "step.started go#2",
      "signal.awaited go#2",
      "child.started go#2",
    ]);
  });

  it("S3-12 gives steps of one name their results by the key that the caller chose, after a restart as well", async () => {
    const world = await openWorld(store);
    const gates = { left: gate<string>(), right: gate<string>() };
    const starts: string[] = [];
    const keyed = workflow("keyed", async (ctx) => {
      const work = (key: "left" | "right") =>
        ctx.step(
          "work",
          () => {
            starts.push(key);
            return gates[key].passed;
          },
          { key },
        );
      const both = await Promise.all([work("left"), work("right")]);
      return [both, await ctx.waitFor("go")];
    });
    await (await world.open([keyed])).start(keyed, undefined, { id: "r" });
    await world.settle();
    gates.right.open("of the right");
    await world.settle();
    gates.left.open("of the left");
    await world.settle();
    const pawl = await world.restart([keyed]);
    await pawl.signal("r", "go", "go");
    expect(await pawl.get("r").result()).toEqual([["of the left", "of the right"], "go"]);
    expect(starts).toEqual(["left", "right"]);
  });

  it("P6 refuses a second use of an explicit key, and names with # or /", async () => {
    const world = await openWorld(store);
    const misusing = workflow("misusing", async (ctx) => {
      await ctx.step("a", () => 1, { key: "once" });
      const codes: unknown[] = [];
      const attempt = async (call: () => Promise<unknown>) =>
        codes.push((await errorOf((async () => call())()))["code"]);
      await attempt(() => ctx.step("b", () => 2, { key: "once" }));
      await attempt(() => ctx.step("a#2", () => 2));
      await attempt(() => ctx.step("a/b", () => 2));
      await attempt(() => ctx.step("a", () => 2, { key: "x#2" }));
      await attempt(() => ctx.step("a", () => 2, { key: "x/y" }));
      await attempt(() => ctx.waitFor("x/y"));
      return codes;
    });
    const run = await (await world.open([misusing])).start(misusing);
    expect(await run.result()).toEqual(["key_reused", ...Array(5).fill("invalid_name")]);
    expect(await world.journal(run)).toHaveLength(4);
  });

  it("P6 keeps the derived keys of a name clear of an explicit one", async () => {
    const world = await openWorld(store);
    const mixing = workflow("mixing", async (ctx) => {
      const first = await ctx.step("x", () => 1, { key: "pay" });
      const second = await ctx.step("pay", () => 2).catch((error: Error) => error);
      return [first, second];
    });
    const run = await (await world.open([mixing])).start(mixing);
    const [first, second] = await run.result();
    expect(first).toBe(1);
    // Either a key of its own or a refusal; never the other step's result.
    expect(hasCode(second, "key_reused") || second === 2).toBe(true);
    const started = (await world.journal(run)).filter((line) => line.startsWith("step.started"));
    expect(new Set(started).size).toBe(started.length);
  });

  it("P6 scopes keys per item of a map", async () => {
    const world = await openWorld(store);
    const mapping = workflow("mapping", async (ctx) =>
      ctx.map(["a", "b"], async (item) => {
        await ctx.step("s", () => item);
        return ctx.step("s", () => `${item}!`);
      }),
    );
    const run = await (await world.open([mapping])).start(mapping);
    expect(await run.result()).toEqual(["a!", "b!"]);
    const keys = (await run.journal()).filter((entry) => entry.type === "step.started").map((entry) => entry.key);
    expect(keys.toSorted()).toEqual(["map/0/s", "map/0/s#2", "map/1/s", "map/1/s#2"]);
  });

  it("P7 refuses calls inside a step", async () => {
    const world = await openWorld(store);
    const other = workflow("other", async () => 1);
    const nested = workflow("nested", async (ctx) => {
      const inner = [
        () => ctx.step("inner", () => 1),
        () => ctx.sleep(1),
        () => ctx.waitFor("x"),
        () => ctx.map([1], () => ctx.step("inner", () => 1)),
        () => ctx.continueAs(1),
        () => ctx.call(other),
        () => ctx.spawn(other),
        async () => ctx.set("x", 1),
        async () => ctx.cost({ usd: 1 }),
        async () => ctx.note("x"),
        async () => ctx.patched("x"),
      ];
      return ctx.step("outer", () =>
        Promise.all(inner.map(async (call) => (await errorOf((async () => call())()))["code"])),
      );
    });
    const run = await (await world.open([nested])).start(nested);
    expect(await run.result()).toEqual(Array(11).fill("call_in_step"));
    expect(await world.journal(run)).toHaveLength(4);
  });
});
