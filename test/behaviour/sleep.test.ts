import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { workflow } from "../../src/core/workflow.ts";
import { DAY, HOUR, MINUTE, openWorld, STORES } from "./harness.ts";

describe.each(STORES)("sleep on %s", (store) => {
  it.each([25, 30, 400])("B43 I13 sleeps %i days, not a millisecond less, through a restart", async (days) => {
    const world = await openWorld(store);
    const sleeping = workflow({ name: "sleeping", deadline: "1000 days" }, async (ctx) => {
      const from = ctx.now();
      await ctx.sleep(`${days} days`);
      return ctx.now() - from;
    });
    await (await world.open([sleeping])).start(sleeping, undefined, { id: "r" });
    await world.advance(DAY);
    const pawl = await world.restart([sleeping]);
    await world.advance((days - 1) * DAY - 1);
    expect((await pawl.get("r").status()).status).toBe("waiting");
    await world.advance(1);
    expect(await pawl.get("r").result()).toBe(days * DAY);
  });

  it("B43 walks long waits of the real clock in legs: none fires early", async () => {
    let fired = false;
    const forget = [
      systemClock.at(systemClock.now() + 30 * DAY, () => (fired = true)),
      systemClock.after(30 * DAY, () => (fired = true)),
    ];
    // setTimeout would have fired both after 1 ms.
    await new Promise<void>((resolve) => systemClock.after(20, resolve));
    for (const stop of forget) stop();
    expect(fired).toBe(false);
  });

  it.each([2, 20])(
    "B44 wakes at the time first recorded, though the body computes %i hours on replay",
    async (hours) => {
      const world = await openWorld(store);
      const outside = { hours: 10 };
      const computing = workflow("computing", async (ctx) => {
        const from = ctx.now();
        await ctx.sleepUntil(new Date(ctx.now() + outside.hours * HOUR));
        return (ctx.now() - from) / HOUR;
      });
      await (await world.open([computing])).start(computing, undefined, { id: "r" });
      await world.advance(HOUR);
      outside.hours = hours;
      const pawl = await world.restart([computing]);
      // Something makes it replay in the meantime.
      await world.advance(3 * HOUR);
      await pawl.signal("r", "unrelated");
      await world.advance(6 * HOUR - 1);
      expect(await world.journal("r")).toEqual(["run.started", "timer.set sleep"]);
      await world.advance(1);
      expect((await pawl.get("r").status()).output).toBe(10);
    },
  );

  it("S4-3 finds a run after a long weekend exactly where it was", async () => {
    const world = await openWorld(store);
    let steps = 0;
    const waiting = workflow("waiting", async (ctx) => {
      await ctx.step("before", () => ++steps);
      return ctx.waitFor("monday");
    });
    const before = await (await world.open([waiting])).start(waiting, undefined, { id: "r" });
    await world.settle();
    const status = await before.status();
    const journal = await before.journal();
    await world.advance(4 * DAY);
    const pawl = await world.restart([waiting]);
    await pawl.idle();
    expect(await pawl.get("r").status()).toEqual(status);
    expect(await pawl.get("r").journal()).toEqual(journal);
    await pawl.signal("r", "monday", "back");
    expect(await pawl.get("r").result()).toBe("back");
    expect(steps).toBe(1);
  });

  it("C-16 waits without a worker: another run gets the only place", async () => {
    const world = await openWorld(store);
    const sleeping = workflow("sleeping", async (ctx) => {
      await ctx.sleep("4 days");
      return "woke";
    });
    const quick = workflow("quick", async (ctx) => ctx.step("s", () => "quick"));
    const pawl = await world.open([sleeping, quick], { concurrency: 1 });
    const sleeper = await pawl.start(sleeping);
    await world.settle();
    expect(await world.store.run(sleeper.id)).toMatchObject({ state: "waiting", owner: null });
    expect(await pawl.run(quick)).toBe("quick");
    await world.advance(4 * DAY);
    expect(await sleeper.result()).toBe("woke");
  });

  it("I13 fires once each, in order of due time, and the time of the body is the time of the outcome", async () => {
    const world = await openWorld(store);
    const start = world.clock.now();
    const many = workflow("many", async (ctx) => {
      const order: [number, number][] = [];
      const nap = async (minutes: number) => {
        await ctx.sleep(`${minutes} min`);
        order.push([minutes, (ctx.now() - start) / 60_000]);
      };
      await Promise.all([30, 10, 20, 10].map(nap));
      return order;
    });
    const run = await (await world.open([many])).start(many);
    await world.advance(HOUR);
    expect(await run.result()).toEqual([
      [10, 10],
      [10, 10],
      [20, 20],
      [30, 30],
    ]);
    expect((await world.journal(run)).filter((line) => line.startsWith("timer.fired"))).toHaveLength(4);
  });

  it("I13 catches up with timers that fell due while nobody was there, in order", async () => {
    const world = await openWorld(store);
    const order: string[] = [];
    const sleeping = workflow("sleeping", async (ctx, hours: number) => {
      await ctx.sleep(`${hours} hours`);
      await ctx.step("woke", () => void order.push(ctx.run.id));
    });
    const first = await world.open([sleeping]);
    for (const hours of [3, 1, 2]) await first.start(sleeping, hours, { id: `h${hours}` });
    await world.settle();
    world.kill(first);
    await world.fence();
    await world.advance(10 * HOUR);
    const pawl = await world.open([sleeping], { concurrency: 1 });
    await pawl.idle();
    expect(order).toEqual(["h1", "h2", "h3"]);
  });

  it("I13 stays in memory for a short sleep, and still wakes on time after a crash in it", async () => {
    const world = await openWorld(store);
    const napping = workflow("napping", async (ctx) => {
      for (let i = 0; i < 3; i++) await ctx.sleep(500);
      return ctx.now();
    });
    const start = world.clock.now();
    await (await world.open([napping])).start(napping, undefined, { id: "r" });
    await world.advance(700);
    const pawl = await world.restart([napping]);
    await world.advance(800);
    expect(await pawl.get("r").result()).toBe(start + 1500);
  });

  it("I13 does not wake early or twice when the wall clock is set back", async () => {
    const world = await openWorld(store);
    const sleeping = workflow("sleeping", async (ctx) => {
      await ctx.sleep("2 hours");
      return "woke";
    });
    const run = await (await world.open([sleeping])).start(sleeping);
    await world.advance(HOUR);
    world.clock.step(-HOUR);
    await world.advance(2 * HOUR - 1);
    expect((await run.status()).status).toBe("waiting");
    await world.advance(1);
    expect(await run.result()).toBe("woke");
    expect((await world.journal(run)).filter((line) => line.startsWith("timer.fired"))).toHaveLength(1);
  });

  it.each(["sleep", "waitFor"])(
    "P8 P29 I13 one bad jump of the wall clock does not stretch a later %s: it counts from the clock when it begins",
    async (what) => {
      const world = await openWorld(store);
      const times: number[] = [];
      const jumping = workflow({ name: "jumping", deadline: "30 days" }, async (ctx) => {
        await ctx.step("far ahead", () => world.clock.step(DAY));
        times.push(ctx.now());
        await ctx.step("and back", () => world.clock.step(-DAY));
        times.push(ctx.now());
        if (what === "sleep") await ctx.sleep("1 min");
        else await ctx.waitFor("go", { timeout: "1 min", default: null });
        return "woke";
      });
      const start = world.clock.now();
      await (await world.open([jumping])).start(jumping, undefined, { id: "r" });
      await world.settle();
      // The time of the body never goes back, and says nothing about the time that is waited for.
      expect(times).toEqual([start + DAY, start + DAY]);
      const pawl = await world.restart([jumping]);
      await world.advance(MINUTE - 1);
      expect((await pawl.get("r").status()).status).toBe("waiting");
      await world.advance(1);
      expect(await pawl.get("r").result()).toBe("woke");
    },
  );

  it("P8 the time of the body is that of its last outcome, and no entry is older than the one before it", async () => {
    const world = await openWorld(store);
    const times: number[] = [];
    const timed = workflow("timed", async (ctx) => {
      times.length = 0;
      times.push(ctx.now());
      await ctx.step("a", () => world.clock.step(HOUR));
      times.push(ctx.now());
      await ctx.step("b", () => world.clock.step(-2 * HOUR));
      times.push(ctx.now());
      await ctx.sleep("2 min");
      times.push(ctx.now());
    });
    const start = world.clock.now();
    const run = await (await world.open([timed])).start(timed);
    await world.advance(2 * MINUTE);
    await run.result();
    const journal = await run.journal();
    const outcomes = journal.filter(({ type }) => /started$|completed$|fired$/.test(type) && type !== "step.started");
    expect(times).toEqual(outcomes.map(({ at }) => at));
    // The timer has fired by the clock, an hour before the time that the journal has reached.
    expect(times).toEqual([start, start + HOUR, start + HOUR, start + HOUR]);
    for (const [i, { at }] of journal.entries()) expect(at).toBeGreaterThanOrEqual(journal[i - 1]?.at ?? 0);
  });

  it("I13 starts a delayed run when its time has come, not before", async () => {
    const world = await openWorld(store);
    const began: number[] = [];
    const delayed = workflow("delayed", async (ctx) => ctx.step("s", () => void began.push(world.clock.now())));
    const start = world.clock.now();
    const pawl = await world.open([delayed]);
    const run = await pawl.start(delayed, undefined, { delay: "3 hours" });
    await world.advance(3 * HOUR - 1);
    expect(began).toEqual([]);
    await world.advance(1);
    await run.result();
    expect(began).toEqual([start + 3 * HOUR]);
  });
});
