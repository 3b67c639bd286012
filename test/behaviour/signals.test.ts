import { describe, expect, it } from "vitest";
import { z } from "zod";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, HOUR, MINUTE, openWorld, STORES } from "./harness.ts";

const waiting = workflow("waiting", async (ctx) => ctx.waitFor("go"));

describe.each(STORES)("signals on %s", (store) => {
  it("I14 B48 X-15 delivers a signal sent before, during and after the wait begins", async () => {
    const world = await openWorld(store);
    const hold = gate();
    const slow = workflow("slow", async (ctx) => {
      await ctx.step("work", () => hold.passed);
      return [await ctx.waitFor("go"), await ctx.waitFor("go"), await ctx.waitFor("go")];
    });
    const pawl = await world.open([slow]);
    // Before its first claim, while a step is in flight, and when it waits.
    const run = await pawl.start(slow, undefined, { delay: "1h" });
    await run.signal("go", "early");
    await world.settle();
    expect((await run.status()).state).toBe("accepted");
    await world.advance(HOUR);
    await run.signal("go", "meanwhile");
    hold.open();
    await world.settle();
    expect((await run.status()).waits).toMatchObject([{ kind: "signal", key: "signal:go#3" }]);
    await run.signal("go", "late");
    expect(await run.result()).toEqual(["early", "meanwhile", "late"]);
  });

  it("B49 keeps a signal sent in every state of a run", async () => {
    const world = await openWorld(store);
    const crash = gate();
    const stages = workflow("stages", async (ctx) => {
      await ctx.step("ask", () => crash.passed, { recovery: "ask" });
      await ctx.step("retry", ({ attempt }) => {
        if (attempt === 1) throw Object.assign(new Error("x"), { status: 503, headers: { "retry-after": "3600" } });
      });
      await ctx.sleep("1h");
      const got = [];
      for (let i = 0; i < 4; i++) got.push(await ctx.waitFor("s"));
      return got;
    });
    const first = await world.open([stages]);
    await first.start(stages, undefined, { id: "r" });
    await world.settle();
    await first.signal("r", "s", "in a step");
    const pawl = await world.restart([stages]);
    await pawl.idle();
    expect((await pawl.get("r").status()).state).toBe("parked");
    await pawl.signal("r", "s", "parked");
    await pawl.idle();
    expect((await pawl.get("r").status()).state).toBe("parked");
    await pawl.resolve("r", { choice: "complete" });
    await world.settle();
    expect((await pawl.get("r").status()).state).toBe("retrying");
    await pawl.signal("r", "s", "retrying");
    await world.advance(HOUR);
    expect((await pawl.get("r").status()).waits).toMatchObject([{ kind: "timer" }]);
    await pawl.signal("r", "s", "sleeping");
    await world.advance(HOUR);
    expect(await pawl.get("r").result()).toEqual(["in a step", "parked", "retrying", "sleeping"]);
  });

  it("I14 survives a crash before and after it was received, and is received once", async () => {
    const world = await openWorld(store);
    const twice = workflow("twice", async (ctx) => {
      const first = await ctx.waitFor("go");
      await ctx.step("s", () => first);
      return [first, await ctx.waitFor("go", { timeout: "1h", default: "nothing" })];
    });
    const client = await world.open();
    const first = await world.open([twice]);
    await first.start(twice, undefined, { id: "r" });
    await world.settle();
    world.kill(first);
    await client.signal("r", "go", 1);
    await world.fence();
    const second = await world.open([twice]);
    await second.idle();
    expect(await world.journal("r")).toContain("step.completed s");
    world.kill(second);
    await world.fence();
    const pawl = await world.open([twice]);
    await world.advance(HOUR);
    expect(await pawl.get("r").result()).toEqual([1, "nothing"]);
  });

  it("I14 keeps the order of one sender", async () => {
    const world = await openWorld(store);
    const collecting = workflow("collecting", async (ctx) => {
      const got: unknown[] = [];
      for (let i = 0; i < 20; i++) got.push(await ctx.waitFor("n"));
      return got;
    });
    const run = await (await world.open([collecting])).start(collecting);
    for (let i = 0; i < 20; i++) await run.signal("n", i);
    expect(await run.result()).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  it("X-15 X-17 P5 delivers a signal with one id once, however often and late it is sent again", async () => {
    const world = await openWorld(store);
    const twice = workflow("twice", async (ctx) => [
      await ctx.waitFor("go"),
      await ctx.waitFor("go", { timeout: "1h", default: "nothing" }),
    ]);
    const run = await (await world.open([twice])).start(twice, undefined, { id: "r" });
    await run.signal("go", "one", { id: "m1" });
    await run.signal("go", "one", { id: "m1" });
    await world.settle();
    // Consumed long ago, and after a restart: the id is still known.
    await run.signal("go", "one", { id: "m1" });
    const pawl = await world.restart([twice]);
    await pawl.signal("r", "go", "one", { id: "m1" });
    await world.advance(HOUR);
    expect(await pawl.get("r").result()).toEqual(["one", "nothing"]);
  });

  it("I14 tells the sender that the run has ended, or that there is none", async () => {
    const world = await openWorld(store);
    const pawl = await world.open([waiting]);
    const run = await pawl.start(waiting);
    await run.signal("go");
    await run.result();
    expect(await errorOf(run.signal("go"))).toMatchObject({ code: "run_ended", fields: { run: run.id } });
    expect(await errorOf(pawl.signal("nobody", "go"))).toMatchObject({ code: "run_not_found" });
  });

  it("X-15 refuses names that are the engine's own, and says what to call instead", async () => {
    const world = await openWorld(store);
    const pawl = await world.open([waiting]);
    const run = await pawl.start(waiting);
    for (const name of ["pawl.decision", "pawl.advance", "pawl.manual", "pawl.whatever"]) {
      const error = await errorOf(run.signal(name, { ticket: "1-0" }));
      expect(error).toMatchObject({ code: "invalid_name", fields: { what: "signal name", value: name } });
      expect(error.message).toContain("pawl.resolve");
    }
    expect(await world.store.inbox(run.id)).toEqual([]);
  });

  it("B50 I14 gives up after the timeout, and a wait that timed out does not eat the next signal", async () => {
    const world = await openWorld(store);
    const patient = workflow("patient", async (ctx) => {
      const error = await errorOf(ctx.waitFor("go", { timeout: "1h" }));
      return [error["code"], error["fields"], await ctx.waitFor("go")];
    });
    const run = await (await world.open([patient])).start(patient);
    await world.advance(HOUR - 1);
    expect((await run.status()).waits).toMatchObject([{ key: "signal:go" }]);
    await world.advance(1);
    expect((await run.status()).waits).toMatchObject([{ key: "signal:go#2" }]);
    await run.signal("go", "for the second");
    expect(await run.result()).toEqual(["wait_timeout", { run: run.id, signal: "go" }, "for the second"]);
  });

  it("X-15 resolves with the default instead, undefined included", async () => {
    const world = await openWorld(store);
    const patient = workflow("patient", async (ctx) => [
      await ctx.waitFor("a", { timeout: 1000, default: { chosen: "default" } }),
      await ctx.waitFor("b", { timeout: 1000, default: undefined }),
    ]);
    await (await world.open([patient])).start(patient, undefined, { id: "r" });
    await world.advance(1000);
    const pawl = await world.restart([patient]);
    await world.advance(1000);
    expect(await pawl.get("r").result()).toEqual([{ chosen: "default" }, undefined]);
  });

  it("P5 prefers a signal acknowledged before the timeout, though nobody read it until after", async () => {
    const world = await openWorld(store);
    const patient = workflow("patient", async (ctx) => ctx.waitFor("go", { timeout: "1h", default: "timed out" }));
    const client = await world.open();
    const first = await world.open([patient]);
    await first.start(patient, undefined, { id: "in-time" });
    await first.start(patient, undefined, { id: "never" });
    await world.settle();
    world.kill(first);
    await world.fence();
    await world.advance(HOUR - 1);
    await client.signal("in-time", "go", "made it");
    await world.advance(HOUR);
    const pawl = await world.open([patient]);
    expect(await pawl.get("in-time").result()).toBe("made it");
    expect(await pawl.get("never").result()).toBe("timed out");
  });

  it("P5 prefers the timeout to a signal acknowledged after it, though nobody was there to notice: the next wait gets it", async () => {
    const world = await openWorld(store);
    const patient = workflow("patient", async (ctx) => [
      await ctx.waitFor("go", { timeout: "1h", default: "timed out" }),
      await ctx.waitFor("go"),
    ]);
    const client = await world.open();
    const first = await world.open([patient]);
    for (const id of ["at-once", "late"]) await first.start(patient, undefined, { id });
    await world.settle();
    world.kill(first);
    await world.fence();
    await world.advance(HOUR);
    await client.signal("at-once", "go", "just in time");
    await world.advance(1);
    await client.signal("late", "go", "too late");
    await world.advance(HOUR);
    const pawl = await world.open([patient]);
    await pawl.signal("at-once", "go", "second");
    expect(await pawl.get("at-once").result()).toEqual(["just in time", "second"]);
    expect(await pawl.get("late").result()).toEqual(["timed out", "too late"]);
  });

  it.each([
    ["before", 30 * MINUTE, "signal"],
    ["after", 2 * HOUR, "timer"],
  ])(
    "P5 a signal that came %s a timer was due meets it in that order, though both waited",
    async (_, sentAt, winner) => {
      const world = await openWorld(store);
      const racing = workflow("racing", async (ctx) =>
        Promise.race([ctx.sleep("1h").then(() => "timer"), ctx.waitFor("go").then(() => "signal")]),
      );
      const client = await world.open();
      const first = await world.open([racing]);
      await first.start(racing, undefined, { id: "r" });
      await world.settle();
      world.kill(first);
      await world.fence();
      await world.advance(sentAt);
      await client.signal("r", "go");
      await world.advance(3 * HOUR - sentAt);
      expect(await (await world.open([racing])).get("r").result()).toBe(winner);
    },
  );

  it("P5 B51 gives a signal to the live wait, not to the loser of a race, and closes the loser with the run", async () => {
    const world = await openWorld(store);
    const racing = workflow("racing", async (ctx) => {
      const winner = await Promise.race([ctx.waitFor("go"), ctx.sleep("1h").then(() => "timer")]);
      return [winner, await ctx.waitFor("go")];
    });
    const run = await (await world.open([racing])).start(racing, undefined, { id: "r" });
    await world.advance(HOUR);
    await run.signal("go", "for the live one");
    expect(await run.result()).toEqual(["timer", "for the live one"]);
    expect(await world.store.waits({ run: "r" })).toEqual([]);
  });

  it("P5 takes the same way in the race after a restart", async () => {
    const world = await openWorld(store);
    const winners: unknown[] = [];
    const racing = workflow("racing", async (ctx) => {
      winners.push(await Promise.race([ctx.sleep("1h").then(() => "timer"), ctx.waitFor("go")]));
      await ctx.waitFor("end");
    });
    const run = await (await world.open([racing])).start(racing, undefined, { id: "r" });
    await run.signal("go", "signal");
    await world.advance(2 * HOUR);
    const pawl = await world.restart([racing]);
    await pawl.signal("r", "end");
    await pawl.get("r").result();
    expect(winners.length).toBeGreaterThan(1);
    expect(new Set(winners)).toEqual(new Set(["signal"]));
  });

  it("I14 keeps signals of other names for their own waits", async () => {
    const world = await openWorld(store);
    const ordered = workflow("ordered", async (ctx) => [await ctx.waitFor("b"), await ctx.waitFor("a")]);
    const run = await (await world.open([ordered])).start(ordered);
    await run.signal("a", 1);
    await run.signal("b", 2);
    expect(await run.result()).toEqual([2, 1]);
  });

  it("P7 does not ask a wait's schema again in replay", async () => {
    const world = await openWorld(store);
    let asked = 0;
    const counted = z.number().refine(() => ++asked > 0);
    const patient = workflow("patient", async (ctx) => [
      await ctx.waitFor("n", { schema: counted }),
      await ctx.waitFor("go"),
    ]);
    await (await world.open([patient])).start(patient, undefined, { id: "r" });
    await world.settle();
    const first = await world.restart([patient]);
    await first.signal("r", "n", 7);
    await world.settle();
    const pawl = await world.restart([patient]);
    await pawl.signal("r", "go", "go");
    expect(await pawl.get("r").result()).toEqual([7, "go"]);
    expect(asked).toBe(1);
  });

  it("X-15 checks a payload against the wait's schema before recording it, and takes the schema's output", async () => {
    const world = await openWorld(store);
    const schema = z.object({ cents: z.coerce.number() });
    const checked = workflow("checked", async (ctx) => {
      const error = await errorOf(ctx.waitFor("pay", { schema }));
      const { cents } = await ctx.waitFor("pay", { schema });
      await ctx.waitFor("end");
      return [error["code"], cents];
    });
    const run = await (await world.open([checked])).start(checked, undefined, { id: "r" });
    await run.signal("pay", { cents: "a lot" });
    await run.signal("pay", { cents: "12" });
    await world.settle();
    const pawl = await world.restart([checked]);
    await pawl.signal("r", "end");
    expect(await pawl.get("r").result()).toEqual(["schema_mismatch", 12]);
  });

  it("I14 wakes a run through another engine on the same store", async () => {
    const world = await openWorld(store);
    const client = await world.open();
    const worker = await world.open([waiting]);
    const run = await client.start("waiting", undefined);
    await worker.idle();
    expect((await run.status()).state).toBe("waiting");
    await run.signal("go", "from afar");
    await worker.idle();
    expect(await run.result()).toBe("from afar");
  });
});
