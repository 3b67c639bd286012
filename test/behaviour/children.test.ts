import { describe, expect, it } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, HOUR, openWorld, STORES } from "./harness.ts";

const double = workflow("double", async (ctx, n: number) => ctx.step("times two", () => n * 2));
const patient = workflow("patient", async (ctx) => ctx.waitFor("go"));

describe.each(STORES)("children on %s", (store) => {
  it("P12 calls a child, waits for it and gets its result, also through a restart", async () => {
    const world = await openWorld(store);
    const parent = workflow("parent", async (ctx) => {
      const [a, b] = await Promise.all([ctx.call(double, 4), ctx.call(patient)]);
      return [a, b];
    });
    const first = await world.open([parent, double, patient]);
    await first.start(parent, undefined, { id: "p" });
    await world.settle();
    const children = (await first.list({ parent: "p" })).runs;
    expect(children.map((run) => [run.workflow, run.status]).toSorted()).toEqual([
      ["double", "succeeded"],
      ["patient", "waiting"],
    ]);
    const pawl = await world.restart([parent, double, patient]);
    await pawl.signal(children.find((run) => run.workflow === "patient")?.id as string, "go", "b");
    expect(await pawl.get("p").result()).toEqual([8, "b"]);
    expect((await pawl.list({ parent: "p" })).runs).toHaveLength(2);
  });

  it("P31 S2-12 starts a child with its parent's commit, and the same child again after a crash", async () => {
    const world = await openWorld(store);
    const ids: string[] = [];
    const parent = workflow("parent", async (ctx) => {
      ids.push((await ctx.spawn(patient)).id);
      ids.push((await ctx.spawn(patient, undefined, { key: "named" })).id);
      await ctx.waitFor("go");
    });
    await (await world.open([parent, patient])).start(parent, undefined, { id: "p" });
    await world.settle();
    const pawl = await world.restart([parent, patient]);
    await pawl.signal("p", "go");
    await pawl.get("p").result();
    expect(ids).toHaveLength(4);
    expect(ids.slice(2)).toEqual(ids.slice(0, 2));
    expect((await pawl.list({ workflow: "patient" })).runs).toHaveLength(2);
    for (const id of new Set(ids)) await pawl.cancel(id);
  });

  it("P12 lets a spawned child live when its parent has ended, and cancels a called one", async () => {
    const world = await openWorld(store);
    const parent = workflow("parent", async (ctx) => {
      await ctx.spawn(patient, undefined, { key: "spawned" });
      void ctx.call(patient, undefined, { key: "called" });
      await ctx.step("s", () => 1);
      return "over";
    });
    const pawl = await world.open([parent, patient]);
    const run = await pawl.start(parent);
    await run.result();
    await world.settle();
    const children = (await pawl.list({ parent: run.id })).runs;
    const states = Object.fromEntries(children.map((child) => [child.status, child.id]));
    expect(Object.keys(states).toSorted()).toEqual(["cancelled", "waiting"]);
    await pawl.signal(states["waiting"] as string, "go", "still here");
    expect(await pawl.get(states["waiting"] as string).result()).toBe("still here");
  });

  it("B10 fails the call with the child's error as cause", async () => {
    const world = await openWorld(store);
    const failing = workflow("failing", async (ctx) => ctx.step("s", () => Promise.reject(new RangeError("no"))));
    const parent = workflow("parent", async (ctx) => {
      const error = await errorOf(ctx.call(failing));
      return [error["code"], (error["fields"] as { status: string }).status, error.cause];
    });
    const pawl = await world.open([parent, failing]);
    const [code, status, cause] = await pawl.run(parent);
    expect([code, status]).toEqual(["child_failed", "failed"]);
    expect(cause).toMatchObject({ name: "RangeError", message: "no" });
  });

  describe("B10 wakes the parent on every path to an end", () => {
    const hanging = workflow({ name: "hanging", deadline: "1h" }, async (ctx) => {
      await ctx.step("hang", ({ attempt }) => (attempt === 1 ? new Promise<never>(() => {}) : 1), {
        recovery: "ask",
        timeout: "1 day",
      });
      return ctx.waitFor("go");
    });
    const parent = workflow("parent", async (ctx) => {
      const error = await errorOf(ctx.call(hanging));
      return (error["fields"] as { status: string }).status;
    });
    const begin = async () => {
      const world = await openWorld(store);
      const pawl = await world.open([parent, hanging]);
      await pawl.start(parent, undefined, { id: "p" });
      await world.settle();
      const child = (await pawl.list({ workflow: "hanging" })).runs[0]?.id as string;
      return { world, pawl, child };
    };

    it("B10 cancelled while it runs", async () => {
      const { pawl, child } = await begin();
      await pawl.cancel(child);
      expect(await pawl.get("p").result()).toBe("cancelled");
    });

    it("B10 past its deadline while it waits, with a worker and without one", async () => {
      const world = await openWorld(store);
      const waiting = workflow({ name: "waiting", deadline: "1h" }, async (ctx) => ctx.waitFor("never"));
      const caller = workflow("caller", async (ctx) => {
        const error = await errorOf(ctx.call(waiting));
        return (error["fields"] as { status: string }).status;
      });
      const first = await world.open([caller, waiting]);
      await first.start(caller, undefined, { id: "attended" });
      await world.settle();
      const [child] = (await first.list({ workflow: "waiting" })).runs;
      expect(child?.state).toBe("waiting");
      await world.advance(HOUR);
      expect(await first.get("attended").result()).toBe("failed");
      expect((await first.get(child?.id as string).status()).stopReason).toBe("deadline_exceeded");
      await first.start(caller, undefined, { id: "alone" });
      await world.settle();
      const pawl = await world.restart([caller]);
      await world.advance(HOUR);
      const alone = (await pawl.list({ workflow: "waiting" })).runs.find(({ state }) => state !== "failed");
      await pawl.cancel(alone?.id as string);
      expect(await pawl.get("alone").result()).toBe("cancelled");
    });

    it("B10 past its deadline while it runs", async () => {
      const { world, pawl, child } = await begin();
      await world.advance(HOUR);
      expect(await pawl.get("p").result()).toBe("failed");
      expect((await pawl.get(child).status()).stopReason).toBe("deadline_exceeded");
    });

    it("B10 parked after a crash, then cancelled without its body", async () => {
      const { world, child } = await begin();
      const pawl = await world.restart([parent, hanging]);
      await world.settle();
      expect((await pawl.get(child).status()).state).toBe("parked");
      await pawl.cancel(child);
      expect(await pawl.get("p").result()).toBe("cancelled");
    });

    it("B10 stranded for want of a worker, then cancelled by a client", async () => {
      const { world, child } = await begin();
      const pawl = await world.restart([parent]);
      await world.settle();
      await pawl.cancel(child);
      expect(await pawl.get("p").result()).toBe("cancelled");
    });

    it("B10 cancelled before its first step", async () => {
      const { world } = await begin();
      const pawl = await world.restart([]);
      const orphaned = workflow("orphaned", async (ctx) => {
        const error = await errorOf(ctx.call(patient));
        return (error["fields"] as { status: string }).status;
      });
      const worker = await world.open([orphaned]);
      const run = await worker.start(orphaned);
      await world.settle();
      const child = (await pawl.list({ workflow: "patient" })).runs[0];
      expect(child?.state).toBe("accepted");
      await pawl.cancel(child?.id as string);
      await worker.idle();
      expect(await run.result()).toBe("cancelled");
    });
  });

  it("P12 cancels open children with their parent, to the last grandchild", async () => {
    const world = await openWorld(store);
    const middle = workflow("middle", async (ctx) => ctx.call(patient));
    const parent = workflow("parent", async (ctx) => ctx.call(middle));
    const pawl = await world.open([parent, middle, patient]);
    const run = await pawl.start(parent);
    await world.settle();
    await run.cancel({ reason: "enough" });
    await errorOf(run.result());
    await world.settle();
    expect((await pawl.list()).runs.map((one) => one.status)).toEqual(["cancelled", "cancelled", "cancelled"]);
  });

  it("P12 cancels the open children of a parked parent that is cancelled without its body", async () => {
    const world = await openWorld(store);
    const parent = workflow("parent", async (ctx) => {
      const child = ctx.call(patient);
      await ctx.step("ask", ({ attempt }) => (attempt === 1 ? new Promise<never>(() => {}) : 1), { recovery: "ask" });
      return child;
    });
    await (await world.open([parent, patient])).start(parent, undefined, { id: "p" });
    await world.settle();
    const pawl = await world.restart([parent, patient]);
    await world.settle();
    expect((await pawl.get("p").status()).state).toBe("parked");
    await pawl.cancel("p");
    await world.settle();
    expect((await pawl.list({ parent: "p" })).runs.map((one) => one.status)).toEqual(["cancelled"]);
  });

  it("I18 finishes a tree of calls with a single place: a parent that waits holds none", async () => {
    const world = await openWorld(store);
    const level1 = workflow("a", async (ctx, n: number) => (await ctx.call(double, n)) + 1);
    const level2 = workflow("b", async (ctx, n: number) => (await ctx.call(level1, n)) + 1);
    const pawl = await world.open([double, level1, level2], { concurrency: 1 });
    expect(await pawl.run(level2, 5)).toBe(12);
  });

  it("P31 keeps the child's result for a parent that was not there when it came", async () => {
    const world = await openWorld(store);
    const parent = workflow("parent", async (ctx) => ctx.call(patient));
    const both = await world.open([parent, patient]);
    await both.start(parent, undefined, { id: "p" });
    await world.settle();
    const [child] = (await both.list({ parent: "p" })).runs;
    const onlyChild = await world.restart([patient]);
    await onlyChild.signal(child?.id as string, "go", "kept");
    await onlyChild.get(child?.id as string).result();
    const pawl = await world.restart([parent]);
    expect(await pawl.get("p").result()).toBe("kept");
  });

  it("P12 aborts steps that still run when the run ends, after its end, and drops their outcomes", async () => {
    const world = await openWorld(store);
    const late = gate<string>();
    const seen: { aborted: boolean; journal: string[] }[] = [];
    const signals: AbortSignal[] = [];
    const racing = workflow("racing", async (ctx) =>
      Promise.race([
        ctx.step("slow", ({ signal }) => {
          signals.push(signal);
          signal.addEventListener("abort", () => {
            void world.journal(ctx.run.id).then((journal) => seen.push({ aborted: signal.aborted, journal }));
          });
          return late.passed;
        }),
        ctx.step("fast", () => "fast"),
      ]),
    );
    const run = await (await world.open([racing])).start(racing);
    expect(await run.result()).toBe("fast");
    await world.settle();
    expect(signals[0]?.reason).toMatchObject({ code: "run_ended" });
    await expect.poll(() => seen[0]?.journal.at(-1)).toBe("run.succeeded");
    late.open("late");
    await world.settle();
    expect((await world.journal(run)).at(-1)).toBe("run.succeeded");
    expect(world.lines.some((line) => line.level === "warn" && line.message.includes("slow"))).toBe(true);
  });
});

describe.each(STORES)("map on %s", (store) => {
  it("X-14 works on at most `concurrency` items at once, in order, and survives a crash in the middle", async () => {
    const world = await openWorld(store);
    const running = { now: 0, most: 0 };
    const starts: number[] = [];
    const victim: { pawl?: Pawl } = {};
    const mapping = workflow("mapping", async (ctx, items: number[]) =>
      ctx.map(
        items,
        async (item, index) => {
          const doubled = await ctx.step("work", async () => {
            starts.push(item);
            running.most = Math.max(running.most, ++running.now);
            await new Promise<void>((resolve) => setImmediate(resolve));
            running.now--;
            if (item === 3 && victim.pawl !== undefined) world.kill(victim.pawl);
            return item * 2;
          });
          return doubled + index;
        },
        { concurrency: 2 },
      ),
    );
    victim.pawl = await world.open([mapping]);
    void victim.pawl.start(mapping, [1, 2, 3, 4, 5], { id: "r" });
    await world.settle();
    delete victim.pawl;
    const pawl = await world.restart([mapping]);
    expect(await pawl.get("r").result()).toEqual([2, 5, 8, 11, 14]);
    expect(running.most).toBe(2);
    expect(starts.slice(0, 3)).toEqual([1, 2, 3]);
    expect(starts.filter((item) => item <= 1)).toHaveLength(1);
  });

  it("X-14 rejects with the first failure and begins no further item", async () => {
    const world = await openWorld(store);
    const starts: number[] = [];
    const mapping = workflow("mapping", async (ctx) =>
      ctx.map(
        [1, 2, 3, 4],
        (item) =>
          ctx.step("work", () => {
            starts.push(item);
            if (item === 2) throw new Error("second");
            return item;
          }),
        { concurrency: 1 },
      ),
    );
    const pawl = await world.open([mapping]);
    expect((await errorOf(pawl.run(mapping))).message).toBe("second");
    expect(starts).toEqual([1, 2]);
  });

  it("X-14 with partial goes on, and tells what became of each item, the same after a restart", async () => {
    const world = await openWorld(store);
    const mapping = workflow("mapping", async (ctx) => {
      const results = await ctx.map(
        [1, 2, 3],
        (item) => ctx.step("work", () => (item === 2 ? Promise.reject(new Error("second")) : item)),
        { partial: true },
      );
      await ctx.waitFor("go");
      return results.map((one) => (one.status === "fulfilled" ? one.value : (one.reason as Error).message));
    });
    await (await world.open([mapping])).start(mapping, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([mapping]);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toEqual([1, "second", 3]);
  });

  it("X-14 nests, with children, sleeps and signals inside", async () => {
    const world = await openWorld(store);
    const mapping = workflow("mapping", async (ctx) =>
      ctx.map([1, 2], async (a) =>
        ctx.map([10, 20], async (b) => {
          await ctx.sleep(a * 1000);
          return ctx.call(double, a * b);
        }),
      ),
    );
    const run = await (await world.open([mapping, double])).start(mapping);
    await world.advance(5000);
    expect(await run.result()).toEqual([
      [20, 40],
      [40, 80],
    ]);
  });

  it("X-14 gives an empty list for no items, and refuses a concurrency that is none", async () => {
    const world = await openWorld(store);
    const mapping = workflow("mapping", async (ctx, concurrency: number) =>
      ctx.map([], () => Promise.resolve(1), { concurrency }),
    );
    const pawl = await world.open([mapping]);
    expect(await pawl.run(mapping, 1)).toEqual([]);
    expect(await errorOf(pawl.run(mapping, 0))).toMatchObject({ code: "invalid_argument" });
  });
});
