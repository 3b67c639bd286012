// Checkpoints, as they are here: every entry of a journal is one, the state document is what they come to, and a store keeps both.
import { describe, expect, it } from "vitest";
import { workflow } from "../../src/core/workflow.ts";
import { phases } from "../../src/flows/phases.ts";
import { DAY, errorOf, gate, nextRound, openWorld, STORES } from "./harness.ts";

interface Outputs {
  readonly gather: { readonly facts: readonly string[] };
  readonly write: { readonly draft: string; readonly polish: string };
}

function report(called: string[], hold: Promise<unknown> = Promise.resolve()) {
  const call = <T>(name: string, value: T): T => {
    called.push(name);
    return value;
  };
  return phases<{ about: string }, Outputs>({ name: "report", version: "1.3.0" }, [
    { name: "gather", run: ({ input }) => call("gather", { facts: [input.about, "more"] }) },
    {
      name: "write",
      steps: [
        { name: "draft", run: ({ outputs }) => call("draft", outputs.gather.facts.join(" and ")) },
        {
          name: "polish",
          run: async ({ outputs }) => {
            const draft = call("polish", outputs.write.draft);
            await hold;
            return `${draft}!`;
          },
        },
      ],
    },
    { name: "send", run: ({ outputs }) => call("send", outputs.write.polish) },
  ]);
}

describe.each(STORES)("checkpoints on %s", (store) => {
  it("S4-9 what a run goes on from after a kill is what was saved: state, outputs, step number and position", async () => {
    const world = await openWorld(store);
    const called: string[] = [];
    const flow = workflow({ name: "flow", version: "1.3.0" }, async (ctx, input: { n: number }) => {
      const first = await ctx.step("first", () => {
        called.push("first");
        return { doubled: input.n * 2, at: new Date(5) };
      });
      ctx.set("sum", first.doubled);
      const timer = ctx.sleep("3 days");
      const signal = await ctx.waitFor("go");
      await timer;
      return { first, sum: ctx.get("sum"), signal };
    });
    const first = await world.open([flow]);
    await first.start(flow, { n: 4 }, { id: "r" });
    await world.settle();
    const [saved, waits] = [await first.get("r").document(), await world.store.waits({ run: "r" })];
    expect(saved).toMatchObject({
      input: { n: 4 },
      state: { sum: 8 },
      step_number: 1,
      phases: { run: { status: "in_progress", steps: { first: { status: "done" } } } },
    });
    world.kill(first);
    await world.fence();
    const second = await world.open([flow]);
    await world.settle();
    expect(await second.get("r").document()).toEqual(saved);
    expect(await world.store.waits({ run: "r" })).toEqual(waits);
    await second.signal("r", "go", "now");
    await world.advance(3 * DAY);
    expect(await second.get("r").result()).toEqual({
      first: { doubled: 8, at: new Date(5) },
      sum: 8,
      signal: "now",
    });
    expect(called).toEqual(["first"]);
  });

  it("S4-11 C-12 the last entry says whether it was taken before or after a step, and the run goes on with that step or with the next", async () => {
    const world = await openWorld(store);
    const called: string[] = [];
    const hold = gate();
    const made = report(called, hold.passed);
    const first = await world.open([made]);
    const run = await first.start(made, { about: "pawls" }, { id: "r", advance: true });
    await first.advance("r");
    // After a step: it is done, and the next one has not begun.
    expect((await run.document()).phases).toMatchObject({ gather: { status: "done" }, write: { status: "pending" } });
    world.kill(first);
    await world.fence();
    const second = await world.open([made]);
    second.advance("r").catch(() => null);
    while (!called.includes("polish")) await nextRound();
    expect(called).toEqual(["gather", "draft", "polish"]);
    // Before a step: it has begun, and nobody knows how far it has come.
    const before = await world.store.journal("r");
    expect([before.at(-1)?.type, before.at(-1)?.key]).toEqual(["step.started", "write.polish"]);
    expect((await second.get("r").document()).phases["write"]?.steps).toMatchObject({
      draft: { status: "done" },
      polish: { status: "in_progress", attempts: 1 },
    });
    world.kill(second);
    hold.open();
    await world.fence();
    const third = await world.open([made]);
    await third.advance("r", { to: "end" });
    expect(await third.get("r").result()).toMatchObject({ send: "pawls and more!" });
    expect(called).toEqual(["gather", "draft", "polish", "polish", "send"]);
    const again = (await world.store.journal("r")).filter(({ key }) => key === "write.polish").map(({ type }) => type);
    expect(again).toEqual(["step.started", "step.started", "step.completed"]);
  });

  it("S4-17 E-23 whoever resumes a run that is not there is told so by name, whichever way", async () => {
    const world = await openWorld(store);
    const made = report([]);
    const pawl = await world.open([made]);
    const run = pawl.get("nobody");
    const ways: Record<string, () => Promise<unknown>> = {
      result: () => run.result(),
      status: () => run.status(),
      document: () => run.document(),
      journal: () => run.journal(),
      signal: () => run.signal("go"),
      cancel: () => run.cancel(),
      advance: () => pawl.advance("nobody"),
      report: () => pawl.report("nobody", "gather", { by: "ann", action: "begin" }),
      resolve: () => pawl.resolve("nobody", "retry"),
      retry: () => pawl.retry("nobody"),
      fork: () => pawl.fork("nobody", { at: 1 }),
      rewrite: () => pawl.rewrite("nobody", { cause: "edit", by: "ann", reason: "x" }),
    };
    for (const [way, resume] of Object.entries(ways))
      expect(await errorOf(resume()), way).toMatchObject({ code: "run_not_found", fields: { run: "nobody" } });
    expect((await pawl.list()).runs).toEqual([]);
  });

  it("S4-10 C-17 a store saves, gives the latest and any one by its position, lists and deletes", async () => {
    const world = await openWorld(store);
    const flow = workflow("flow", async (ctx) => {
      for (const name of ["a", "b", "c"]) await ctx.step(name, () => name);
      return ctx.waitFor("go");
    });
    const pawl = await world.open([flow]);
    for (const id of ["r1", "r2"]) await pawl.start(flow, undefined, { id });
    await world.settle();
    const { store: place } = world;
    const all = await place.journal("r1");
    const last = all.length - 1;
    expect(all.map(({ seq }) => seq)).toEqual([...all.keys()]);
    expect(all.map(({ key }) => key)).toEqual([null, "a", "a", "b", "b", "c", "c", "go"]);
    expect(await place.journal("r1", { from: last })).toEqual([all[last]]);
    expect(await place.journal("r1", { from: 2, limit: 1 })).toEqual([all[2]]);
    expect((await place.runs({ limit: 9 })).map(({ id }) => id).sort()).toEqual(["r1", "r2"]);
    await pawl.signal("r1", "go", "done");
    expect(await pawl.get("r1").result()).toBe("done");
    await world.advance(DAY);
    expect(await place.purge({ succeededBefore: world.clock.now(), failedBefore: 0, limit: 9 })).toBe(1);
    expect([await place.run("r1"), await place.journal("r1")]).toEqual([null, []]);
    expect((await place.runs({ limit: 9 })).map(({ id }) => id)).toEqual(["r2"]);
    expect(await place.journal("r2")).toHaveLength(all.length);
  });
});
