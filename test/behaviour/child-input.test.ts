import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { StandardSchema } from "../../src/core/schema.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, openWorld, STORES } from "./harness.ts";

describe.each(STORES)("the input of a child on %s", (store) => {
  it("P7 asks a child's schema once, before the call is recorded: a tighter one does not matter in replay", async () => {
    const world = await openWorld(store);
    const asked: unknown[] = [];
    const schema = (defaults: object, isTight: boolean): StandardSchema<{ n: number }> => ({
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value) => {
          asked.push(value);
          if (isTight) return { issues: [{ message: "too large" }] };
          return { value: { ...defaults, ...(value as { n: number }) } };
        },
      },
    });
    const versions = [schema({ by: "first" }, false), schema({ by: "second" }, true)].map((input, i) => {
      const child = workflow({ name: "child", version: `1.0.${i}`, input }, async (ctx, given) => {
        await ctx.waitFor("go");
        return given;
      });
      const parent = workflow({ name: "parent", version: `1.0.${i}` }, async (ctx) => [
        (await ctx.spawn(child, { n: 2 })).id,
        await ctx.call(child, { n: 1 }),
      ]);
      return [parent, child] as const;
    });
    const [first, second] = versions as [(typeof versions)[0], (typeof versions)[0]];
    await (await world.open(first)).start(first[0], undefined, { id: "p" });
    await world.settle();
    expect(asked).toEqual([{ n: 2 }, { n: 1 }]);
    const pawl = await world.restart(second);
    await world.settle();
    for (const { id } of (await pawl.list({ workflow: "child" })).runs) await pawl.signal(id, "go");
    expect(await pawl.get("p").result()).toEqual([expect.any(String), { n: 1, by: "first" }]);
    expect(asked).toHaveLength(2);
  });

  it("P7 refuses a child whose input does not fit on every pass alike: nothing is recorded, and its key stays free", async () => {
    const world = await openWorld(store);
    const child = workflow({ name: "child", input: z.object({ n: z.number() }) }, async (_, { n }) => n);
    const parent = workflow("parent", async (ctx) => {
      const refused = await errorOf((async () => ctx.call(child, { n: "1" } as never, { key: "k" }))());
      const value = await ctx.call(child, { n: 1 }, { key: "k" });
      const late = await errorOf((async () => ctx.spawn(child, { n: "2" } as never))());
      await ctx.waitFor("go");
      return [refused["code"], value, late["code"]];
    });
    await (await world.open([parent, child])).start(parent, undefined, { id: "p" });
    await world.settle();
    const pawl = await world.restart([parent, child]);
    await pawl.signal("p", "go");
    expect(await pawl.get("p").result()).toEqual(["schema_mismatch", 1, "schema_mismatch"]);
    expect((await world.journal("p")).filter((line) => line.startsWith("child.started"))).toEqual(["child.started k"]);
  });
});
