import { describe, expect, it } from "vitest";
import { workflow } from "../../src/core/workflow.ts";
import { openWorld, STORES_AT_ONCE } from "../behaviour/harness.ts";

describe.each(STORES_AT_ONCE)("forks on %s", (store) => {
  it("P10 of a later generation replay with the chance that was recorded", async () => {
    const world = await openWorld(store);
    const charged: string[] = [];
    async function charge(id: string) {
      charged.push(id);
      return id;
    }
    const looping = workflow("looping", async (ctx, n: number) => {
      if (n === 0) await ctx.continueAs(1);
      const id = await ctx.step(charge, ctx.uuid());
      await ctx.step("b", () => 1);
      return id;
    });
    const pawl = await world.open([looping]);
    const run = await pawl.start(looping, 0);
    const id = await run.result();
    const fork = await pawl.fork(run.id, { at: "b" });
    await world.settle();
    expect((await fork.status()).parked).toBeUndefined();
    expect(await fork.result()).toBe(id);
    expect(await (await pawl.fork(fork.id, { at: "b" })).result()).toBe(id);
    expect(charged).toEqual([id]);
  });

  it("P10 of a lenient workflow have children and keys of their own after the fork point", async () => {
    const world = await openWorld(store);
    const keys: string[] = [];
    const child = workflow("child", async () => "child");
    const lenient = workflow({ name: "lenient", onMissing: "execute" }, async (ctx) => {
      await ctx.step("a", () => 1);
      await ctx.step("b", ({ key }) => void keys.push(key));
      return ctx.call(child);
    });
    const pawl = await world.open([lenient, child]);
    const run = await pawl.start(lenient);
    expect(await run.result()).toBe("child");
    const fork = await pawl.fork(run.id, { at: "b" });
    await world.settle();
    expect((await fork.status()).status).toBe("succeeded");
    expect(new Set(keys).size).toBe(2);
  });

  it("P10 retrying a cancelled run goes on where it was, not at a failure that it had dealt with", async () => {
    const world = await openWorld(store);
    const begun: string[] = [];
    const coping = workflow("coping", async (ctx) => {
      await ctx
        .step("a", () => {
          begun.push("a");
          throw new Error("no");
        })
        .catch(() => {});
      return ctx.waitFor("go");
    });
    const pawl = await world.open([coping]);
    const run = await pawl.start(coping);
    await world.settle();
    await run.cancel();
    await world.settle();
    const again = await pawl.retry(run.id);
    await world.settle();
    await again.signal("go", 1);
    expect(await again.result()).toBe(1);
    expect(begun).toEqual(["a"]);
  });
});
