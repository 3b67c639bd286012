import { describe, expect, it } from "vitest";
import { workflow } from "../../src/core/workflow.ts";
import { gate, openWorld, STORES_AT_ONCE } from "../behaviour/harness.ts";
import { openOn, rounds } from "./rig.ts";

describe.each(STORES_AT_ONCE)("a drain on %s", (store) => {
  it("P3 leaves a journal that replay can follow when parallel branches go on meanwhile", async () => {
    const world = await openWorld(store);
    const gates = { a: gate<string>(), b: gate<string>() };
    const begun: string[] = [];
    const branches = workflow("branches", async (ctx) => {
      const branch = async (first: "a" | "b", second: string) => {
        await ctx.step(first, () => {
          begun.push(first);
          return gates[first].passed;
        });
        return ctx.step(second, () => {
          begun.push(second);
          return second;
        });
      };
      return Promise.all([branch("a", "c"), branch("b", "d")]);
    });
    const first = await world.open([branches]);
    await first.start(branches, undefined, { id: "r" });
    await world.settle();
    const closed = first.close();
    await world.settle();
    gates.a.open("a");
    await world.settle();
    gates.b.open("b");
    await closed;
    expect(begun).toEqual(["a", "b"]);
    const pawl = await world.open([branches]);
    await world.settle();
    expect((await pawl.get("r").status()).parked).toBeUndefined();
    expect(await pawl.get("r").result()).toEqual(["c", "d"]);
    expect(begun.sort()).toEqual(["a", "b", "c", "d"]);
  });

  it("P18 does not put a run to sleep over a call that it has dropped", async () => {
    const world = await openWorld(store);
    const hold = gate();
    const begun: string[] = [];
    const mixed = workflow("mixed", async (ctx) => {
      const work = async () => {
        await ctx.step("a", () => hold.passed);
        await ctx.step("b", () => void begun.push("b"));
      };
      await Promise.all([work(), ctx.sleep("1 day")]);
    });
    const first = await world.open([mixed]);
    await first.start(mixed, undefined, { id: "r" });
    await world.settle();
    const closed = first.close();
    await world.settle();
    hold.open();
    await closed;
    await world.open([mixed]);
    await world.settle();
    expect(begun).toEqual(["b"]);
  });

  it("I27 hands a run back as soon as it has nothing under way, while the step of another one goes on", async () => {
    const world = await openWorld(store);
    const gates = { quick: gate(), slow: gate() };
    const begun: string[] = [];
    const steps = workflow("steps", async (ctx, name: "quick" | "slow") => {
      await ctx.step("first", () => gates[name].passed);
      await ctx.step("second", () => void begun.push(name));
    });
    const first = await world.open([steps]);
    for (const id of ["quick", "slow"] as const) await first.start(steps, id, { id });
    await world.settle();
    const second = await world.open([steps]);
    const closed = first.close();
    await world.settle();
    gates.quick.open();
    await second.get("quick").result();
    expect(begun).toEqual(["quick"]);
    gates.slow.open();
    await closed;
    await second.get("slow").result();
    expect(begun).toEqual(["quick", "slow"]);
  });

  it("I27 waits without turning round: a step that it has put off rings no alarm", async () => {
    const world = await openWorld(store);
    const gates = { a: gate(), slow: gate() };
    let looks = 0;
    const now = () => {
      looks++;
      return world.clock.now();
    };
    const branches = workflow("branches", async (ctx) => {
      const work = async () => {
        await ctx.step("a", () => gates.a.passed);
        await ctx.step("b", () => {});
      };
      await Promise.all([work(), ctx.step("slow", () => gates.slow.passed)]);
    });
    const pawl = await openOn(world.store, { clock: { ...world.clock, now } }, [branches]);
    await pawl.start(branches, undefined, { id: "r" });
    await rounds();
    const closed = pawl.close();
    gates.a.open();
    await rounds();
    expect(await world.journal("r")).toContain("step.failed b");
    looks = 0;
    await rounds();
    expect(looks).toBeLessThan(10);
    gates.slow.open();
    await closed;
  });

  it("gives the result of a run that ends meanwhile to whoever asked for it before", async () => {
    const world = await openWorld(store);
    const hold = gate<number>();
    const one = workflow("one", (ctx) => ctx.step("a", () => hold.passed));
    const pawl = await world.open([one]);
    const run = await pawl.start(one, undefined);
    await world.settle();
    const result = run.result();
    const closed = pawl.close();
    hold.open(7);
    expect(await result).toBe(7);
    await closed;
  });

  it("P10 begins no further generation", async () => {
    const world = await openWorld(store);
    const hold = gate();
    const begun: number[] = [];
    const looping = workflow("looping", async (ctx, n: number) => {
      await ctx.step("work", () => {
        begun.push(n);
        return n === 0 ? hold.passed : undefined;
      });
      if (n < 3) await ctx.continueAs(n + 1);
      return n;
    });
    const first = await world.open([looping]);
    await first.start(looping, 0, { id: "r" });
    await world.settle();
    const closed = first.close();
    await world.settle();
    hold.open();
    await closed;
    expect(begun).toEqual([0]);
    const pawl = await world.open([looping]);
    expect(await pawl.get("r").result()).toBe(3);
    expect(begun).toEqual([0, 1, 2, 3]);
  });
});
