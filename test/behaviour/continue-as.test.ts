import { describe, expect, it } from "vitest";
import { z } from "zod";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, openWorld, STORES } from "./harness.ts";

describe.each(STORES)("continueAs on %s", (store) => {
  it("P10 begins a new generation with fresh keys, the same id, and a journal that goes on", async () => {
    const world = await openWorld(store);
    const keys: string[] = [];
    const chances: number[] = [];
    const counting = workflow("counting", async (ctx, n: number): Promise<string> => {
      chances.push(ctx.random());
      await ctx.step("s", ({ key }) => void keys.push(key));
      if (n < 3) return ctx.continueAs(n + 1);
      return `${ctx.run.id} at ${n}`;
    });
    const run = await (await world.open([counting])).start(counting, 1, { id: "r" });
    expect(await run.result()).toBe("r at 3");
    expect(new Set(keys).size).toBe(3);
    expect(new Set(chances).size).toBe(3);
    expect((await world.journal("r")).filter((line) => line === "run.continued")).toHaveLength(2);
  });

  it("P10 I5 what it refuses live it refuses in replay: a body that catches the refusal goes on after a restart", async () => {
    const world = await openWorld(store);
    const stubborn = workflow("stubborn", async (ctx) => {
      const refusal = await errorOf(ctx.continueAs({ no: () => {} }));
      await ctx.step("s", () => 1);
      await ctx.waitFor("go");
      return (refusal as { code?: string }).code;
    });
    const first = await world.open([stubborn]);
    await first.start(stubborn, undefined, { id: "r" });
    await first.idle();
    await first.close();
    const second = await world.open([stubborn]);
    await second.signal("r", "go");
    expect(await second.get("r").result()).toBe("not_serializable");
  });

  it("P10 gives runs, generations and steps whose names look alike keys and chances of their own", async () => {
    const world = await openWorld(store);
    const keys: string[] = [];
    const chances: number[] = [];
    const alike = workflow("alike", async (ctx, { step, more }: { step: string; more: number }): Promise<void> => {
      chances.push(ctx.random());
      await ctx.step(step, ({ key }) => {
        keys.push(key);
        chances.push(ctx.random());
      });
      if (more > 0) await ctx.continueAs({ step, more: more - 1 });
    });
    const pawl = await world.open([alike]);
    for (const [id, step, more] of [
      ["r", "s", 1],
      ["r.1", "s", 0],
      ["a:b", "c", 0],
      ["a", "b:c", 0],
    ] as const)
      await pawl.run(alike, { step, more }, { id });
    expect(keys).toEqual(["r/s", "r#1/s", "r.1/s", "a:b/c", "a/b:c"]);
    expect(new Set(chances).size).toBe(10);
  });

  it("P10 replays from the last generation only, state and cost included", async () => {
    const world = await openWorld(store);
    const bodies: number[] = [];
    const starts: number[] = [];
    const counting = workflow("counting", async (ctx, n: number): Promise<unknown> => {
      bodies.push(n);
      ctx.set("sum", ((ctx.get("sum") as number | undefined) ?? 0) + n);
      ctx.cost({ usd: 1 });
      await ctx.step("s", () => void starts.push(n));
      if (n < 3) return ctx.continueAs(n + 1);
      await ctx.waitFor("go");
      return ctx.get("sum");
    });
    await (await world.open([counting])).start(counting, 1, { id: "r" });
    await world.settle();
    const pawl = await world.restart([counting]);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toBe(6);
    expect(bodies).toEqual([1, 2, 3, 3]);
    expect(starts).toEqual([1, 2, 3]);
    const status = await pawl.get("r").status();
    expect(status.cost).toEqual({ usd: 3 });
    expect(status.data).toEqual({ sum: 6 });
  });

  it("B52 I14 loses no signal around generations that come faster than they are read", async () => {
    const world = await openWorld(store);
    const eating = workflow("eating", async (ctx, eaten: number[]): Promise<number[]> => {
      const next = await ctx.waitFor<number>("n");
      await ctx.step("digest", () => next);
      const all = [...eaten, next];
      return all.length < 25 ? ctx.continueAs(all) : all;
    });
    const pawl = await world.open([eating]);
    const run = await pawl.start(eating, []);
    for (let i = 0; i < 25; i++) await run.signal("n", i);
    expect(await run.result()).toEqual(Array.from({ length: 25 }, (_, i) => i));
  });

  it("B52 hands a signal that comes while the generations change to the next one, even while it works", async () => {
    const world = await openWorld(store);
    const hold = gate();
    const turning = workflow("turning", async (ctx, n: number): Promise<unknown> => {
      if (n === 1) {
        await ctx.step("first", () => 1);
        // Sent in the turn that ends this generation: acknowledged before the next one has begun.
        void pawl.signal(ctx.run.id, "go", "in between");
        return ctx.continueAs(2);
      }
      return Promise.race([ctx.waitFor("go"), ctx.step("long", () => hold.passed)]);
    });
    const pawl = await world.open([turning]);
    const run = await pawl.start(turning, 1);
    await world.settle();
    expect((await run.status()).status).toBe("succeeded");
    hold.open();
    expect(await run.result()).toBe("in between");
  });

  it("P10 survives a crash right after a generation ended", async () => {
    const world = await openWorld(store);
    const bodies: number[] = [];
    const counting = workflow("counting", async (ctx, n: number): Promise<number> => {
      bodies.push(n);
      await ctx.step("s", () => 1);
      if (n === 1) return ctx.continueAs(2);
      await ctx.waitFor("go");
      return n;
    });
    const first = await world.open([counting]);
    const run = await first.start(counting, 1, { id: "r" });
    for await (const event of run.events()) {
      if (event.type !== "run.continued") continue;
      world.kill(first);
      break;
    }
    const pawl = await world.restart([counting]);
    await pawl.signal("r", "go");
    expect(await pawl.get("r").result()).toBe(2);
    expect(bodies.filter((n) => n === 1)).toHaveLength(1);
  });

  it("P10 starts other children in each generation, and cancels those left open", async () => {
    const world = await openWorld(store);
    const patient = workflow("patient", async (ctx) => ctx.waitFor("go"));
    const parent = workflow("parent", async (ctx, n: number): Promise<unknown> => {
      const child = ctx.call(patient);
      if (n === 2) return child;
      await ctx.step("s", () => 1);
      return ctx.continueAs(2);
    });
    const pawl = await world.open([parent, patient]);
    const run = await pawl.start(parent, 1);
    await world.settle();
    const children = (await pawl.list({ parent: run.id })).runs;
    expect(children.map((child) => child.status).toSorted()).toEqual(["cancelled", "waiting"]);
    await pawl.signal(children.find((child) => child.status === "waiting")?.id as string, "go", "second");
    expect(await run.result()).toBe("second");
  });

  it("P10 checks the next input before anything is written", async () => {
    const world = await openWorld(store);
    const typed = workflow({ name: "typed", input: z.number() }, async (ctx, n): Promise<unknown> => {
      if (n === 1) return (await errorOf((async () => ctx.continueAs("two"))()))["code"];
      return n;
    });
    const run = await (await world.open([typed])).start(typed, 1);
    expect(await run.result()).toBe("schema_mismatch");
    expect(await world.journal(run)).not.toContain("run.continued");
  });

  it("P19 I16 ends a cancelled run that tries to continue: no new generation, no new step", async () => {
    const world = await openWorld(store);
    const starts: number[] = [];
    const stubborn = workflow("stubborn", async (ctx, n: number): Promise<unknown> => {
      await ctx.step("s", () => void starts.push(n));
      await ctx.waitFor("never").catch(() => {});
      return ctx.continueAs(n + 1);
    });
    const pawl = await world.open([stubborn]);
    const run = await pawl.start(stubborn, 1);
    await world.settle();
    await run.cancel();
    await world.settle();
    expect((await run.status()).status).toBe("cancelled");
    expect(starts).toEqual([1]);
    expect(await world.journal(run)).not.toContain("run.continued");
  });
});
