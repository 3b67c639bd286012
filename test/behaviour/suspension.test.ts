import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { workflow } from "../../src/core/workflow.ts";
import { openOn } from "../attacks/rig.ts";
import { DAY, gate, HOUR, openWorld, STORES } from "./harness.ts";

describe.each(STORES)("suspension on %s", (store) => {
  it("P1 is no entry and no exception: neither the journal nor catch nor finally sees it", async () => {
    const world = await openWorld(store);
    const seen: string[] = [];
    const guarded = workflow("guarded", async (ctx) => {
      try {
        await ctx.sleep("1 day");
        seen.push("slept");
      } catch {
        seen.push("caught");
      } finally {
        seen.push("finally");
      }
      return "end";
    });
    await (await world.open([guarded])).start(guarded, undefined, { id: "r" });
    await world.settle();
    expect(await world.store.run("r")).toMatchObject({ state: "waiting", owner: null });
    expect(await world.journal("r")).toEqual(["run.started", "timer.set sleep"]);
    const pawl = await world.restart([guarded]);
    await world.advance(DAY - 1);
    expect(seen).toEqual([]);
    await world.advance(1);
    expect(await pawl.get("r").result()).toBe("end");
    expect(seen).toEqual(["slept", "finally"]);
  });

  it("leaves memory when only waits are left, and comes back for each wake-up", async () => {
    const world = await openWorld(store);
    const waiting = workflow("waiting", async (ctx) => {
      const got = [await ctx.waitFor("a"), await ctx.waitFor("b")];
      return got;
    });
    const pawl = await world.open([waiting]);
    const run = await pawl.start(waiting);
    for (const name of ["a", "b"]) {
      await world.settle();
      expect((await pawl.workers())[0]?.runs).toBe(0);
      await run.signal(name, name);
    }
    expect(await run.result()).toEqual(["a", "b"]);
  });

  it("idle resolves when all runs wait or have ended, not before", async () => {
    const world = await openWorld(store);
    const hold = gate();
    const working = workflow("working", async (ctx) => {
      await ctx.step("a", () => hold.passed);
      await ctx.sleep("1 day");
    });
    const pawl = await world.open([working]);
    await pawl.start(working);
    let isIdle = false;
    const idle = pawl.idle().then(() => (isIdle = true));
    await world.settle();
    expect(isIdle).toBe(false);
    hold.open();
    await idle;
    expect((await pawl.list({ status: "waiting" })).runs).toHaveLength(1);
  });

  it("P28 hands runs back when it closes: what ran is recorded, what waits is free, no claim is held against them", async () => {
    const world = await openWorld(store);
    const hold = gate<string>();
    let starts = 0;
    const working = workflow("working", async (ctx) => {
      const value = await ctx.step("a", () => {
        starts++;
        return hold.passed;
      });
      return [value, await ctx.step("b", () => "b")];
    });
    const first = await world.open([working]);
    await first.start(working, undefined, { id: "r" });
    await world.settle();
    const closing = first.close();
    await world.settle();
    hold.open("a");
    await closing;
    expect(await world.store.run("r")).toMatchObject({ owner: null, claims: 0 });
    expect(await world.journal("r")).toContain("step.completed a");
    expect(await world.journal("r")).not.toContain("step.started b");
    const pawl = await world.open([working]);
    expect(await pawl.get("r").result()).toEqual(["a", "b"]);
    expect(starts).toBe(1);
  });

  it("P18 is refused when mail came first: the run goes on in memory, and reads the mail", async () => {
    const world = await openWorld(store, { leaseClock: manualClock() });
    const bodies: string[] = [];
    const waiting = workflow("waiting", async (ctx) => {
      bodies.push(ctx.run.id);
      return ctx.waitFor("go");
    });
    const refused: unknown[] = [];
    const pawl = await openOn(
      world.store,
      {
        hints: () => () => {},
        commit: async (request) => {
          const isSuspension = request.runs.some((part) => part.ifWake !== undefined);
          if (isSuspension && refused.length === 0)
            await world.store.deliver({ to: "r", id: "m", kind: "signal", name: "go", data: null });
          const verdicts = await world.store.commit(request);
          refused.push(...verdicts.filter((verdict) => verdict.kind === "refused"));
          return verdicts;
        },
      },
      [waiting],
    );
    await pawl.start(waiting, undefined, { id: "r" });
    await pawl.get("r").result();
    expect(refused).toEqual([{ run: "r", kind: "refused", why: "wake" }]);
    expect(await world.journal("r")).toEqual([
      "run.started",
      "signal.awaited go",
      "signal.received go",
      "run.succeeded",
    ]);
    expect(bodies).toEqual(["r"]);
  });

  it("B9 does not happen beside a step that runs, however long: nothing waits for what only the run itself can bring", async () => {
    const world = await openWorld(store);
    const hold = gate<string>();
    const both = workflow("both", async (ctx) =>
      Promise.all([ctx.step("hang", () => hold.passed, { timeout: "1 day" }), ctx.waitFor("go")]),
    );
    const pawl = await world.open([both]);
    const run = await pawl.start(both, undefined, { id: "r" });
    await world.advance(HOUR);
    expect(await world.store.run("r")).toMatchObject({ state: "running", owner: expect.any(String) });
    expect((await world.store.waits({ run: "r" })).map((wait) => wait.key)).toEqual(["signal:go"]);
    await run.signal("go", "went");
    await world.advance(HOUR);
    expect(await world.store.run("r")).toMatchObject({ state: "running", owner: expect.any(String) });
    expect(await world.store.waits({ run: "r" })).toEqual([]);
    hold.open("ran");
    expect(await run.result()).toEqual(["ran", "went"]);
  });
});
