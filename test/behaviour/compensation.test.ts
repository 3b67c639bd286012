import { describe, expect, it, vi } from "vitest";
import { cancelText } from "../../src/base/cancel-text.ts";
import { RetryableError } from "../../src/base/errors.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Context } from "../../src/core/context.ts";
import { workflow } from "../../src/core/workflow.ts";
import { withoutColdStart } from "../cold-start.ts";
import { errorOf, gate, HOUR, MINUTE, openWorld, STORES } from "./harness.ts";

/** What was done and undone, in order. */
class Outside {
  readonly log: string[] = [];

  effect(ctx: Context, name: string, undo: (key: string) => unknown = () => {}): Promise<string> {
    return ctx.effect(name, {
      idempotent: true,
      do: () => {
        this.log.push(`do ${name}`);
        return `${name} done`;
      },
      undo: async (value, { key, undoes }) => {
        this.log.push(`undo ${name}: ${value}`);
        expect(key).toBe(`${undoes}/undo`);
        await undo(key);
      },
    });
  }
}

/** Never answers; tried again, it surely does nothing. */
function hang(log: string[], attempt: number): Promise<never> {
  log.push(`do ${attempt}`);
  if (attempt > 1) throw new Error("not allowed");
  return new Promise<never>(() => {});
}

describe.each(STORES)("compensation on %s", (store) => {
  it("S2-25 S2-32 X-27 S2-81 undoes what was done when the run fails, the last first, each once", async () => {
    const world = await openWorld(store);
    const outside = new Outside();
    const flow = workflow("flow", async (ctx) => {
      await outside.effect(ctx, "a");
      await ctx.step("b", () => outside.log.push("do b"), { undo: (n) => outside.log.push(`undo b: ${n}`) });
      await outside.effect(ctx, "c");
      await ctx.step("fatal", () => {
        throw new Error("no stock");
      });
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    expect((await errorOf(run.result())).message).toBe("no stock");
    expect(outside.log).toEqual(["do a", "do b", "do c", "undo c: c done", "undo b: 2", "undo a: a done"]);
    expect(await world.journal("r")).toEqual([
      "run.started",
      "effect.planned a",
      "effect.executed a",
      "step.started b",
      "step.completed b",
      "effect.planned c",
      "effect.executed c",
      "step.started fatal",
      "step.failed fatal",
      "run.compensating",
      "step.started c/undo",
      "effect.compensated c/undo",
      "step.started b/undo",
      "effect.compensated b/undo",
      "step.started a/undo",
      "effect.compensated a/undo",
      "run.failed",
    ]);
    expect((await run.effects()).map(({ effect, status }) => `${effect} ${status}`)).toEqual([
      "a compensated",
      "b compensated",
      "c compensated",
    ]);
  });

  it("S2-27 a run that has done nothing, or that says what it did is to stay, fails without it", async () => {
    const world = await openWorld(store);
    const outside = new Outside();
    const nothing = workflow("nothing", async () => {
      throw new Error("fatal");
    });
    const staying = workflow("staying", async (ctx) => {
      await outside.effect(ctx, "a");
      throw Object.assign(new Error("stays"), { fields: { compensate: false } });
    });
    const pawl = await world.open([nothing, staying]);
    for (const flow of [nothing, staying]) {
      const run = await pawl.start(flow);
      await errorOf(run.result());
      expect(await world.journal(run)).not.toContain("run.compensating");
    }
    expect(outside.log).toEqual(["do a"]);
  });

  it("S2-58 I6 a process that is killed while it undoes goes on where it was, and undoes nothing twice", async () => {
    const world = await openWorld(store);
    const outside = new Outside();
    const hold = gate();
    const flow = workflow("flow", async (ctx) => {
      await outside.effect(ctx, "a");
      await outside.effect(ctx, "b", () => (outside.log.length < 6 ? hold.passed : undefined));
      await outside.effect(ctx, "c");
      throw new Error("fatal");
    });
    const pawl = await world.open([flow]);
    void pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    expect(outside.log).toEqual(["do a", "do b", "do c", "undo c: c done", "undo b: b done"]);
    expect((await pawl.get("r").status()).state).toBe("compensating");
    const second = await world.restart([flow]);
    expect((await errorOf(second.get("r").result())).message).toBe("fatal");
    expect(outside.log.slice(5)).toEqual(["undo b: b done", "undo a: a done"]);
  });

  it("S2-58 C-15 E-15 X-27 an undo is retried; one that always fails is listed, and the others are done", async () => {
    const world = await openWorld(store);
    const outside = new Outside();
    let tries = 0;
    const flow = workflow({ name: "flow", retry: { max: 2, jitter: false } }, async (ctx) => {
      await outside.effect(ctx, "a");
      await outside.effect(ctx, "b", () => {
        throw new Error("bank is closed");
      });
      await outside.effect(ctx, "c", () => {
        if (++tries < 2) throw new Error("again");
      });
      throw new Error("fatal");
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    await world.advance(HOUR);
    const error = await errorOf(run.result());
    expect(error).toMatchObject({
      code: "compensation_incomplete",
      fields: { remaining: [{ effect: "b", error: expect.stringContaining("retries are used up") }] },
      cause: { message: "fatal" },
    });
    // Whoever has to clean up is told why, and that there is something to do.
    expect(error.message).toContain("It was: bank is closed");
    expect((await run.effects())[1]?.error).toContain("It was: bank is closed");
    const alert = { level: "error", message: error.message, fields: { reason: "compensation_incomplete" } };
    expect(world.lines).toContainEqual(
      expect.objectContaining({ ...alert, fields: expect.objectContaining(alert.fields) }),
    );
    expect(await run.status()).toMatchObject({ state: "failed", stopReason: "compensation_incomplete" });
    expect(tries).toBe(2);
    expect(outside.log.filter((line) => line.startsWith("undo b"))).toHaveLength(3);
    expect((await run.effects()).map(({ status }) => status)).toEqual(["compensated", "executed", "compensated"]);
  });

  it("S2-58 the wait for the next try of an undo survives a restart", async () => {
    const world = await openWorld(store);
    const outside = new Outside();
    let tries = 0;
    const flow = workflow({ name: "flow", retry: { max: 2, base: "10m", cap: "1h", jitter: false } }, async (ctx) => {
      await outside.effect(ctx, "a", () => {
        if (++tries < 3) throw new Error("again");
      });
      throw new Error("fatal");
    });
    const pawl = await world.open([flow]);
    await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    expect(tries).toBe(1);
    expect((await pawl.get("r").status()).state).toBe("compensating");
    const second = await world.restart([flow]);
    await world.settle();
    expect(tries).toBe(1);
    await world.advance(HOUR);
    expect(tries).toBe(3);
    expect((await errorOf(second.get("r").result())).message).toBe("fatal");
  });

  it("C-15 D-10 S2-33 S2-81 cancel with compensate undoes and ends as cancelled; without, nothing is undone", async () => {
    const world = await openWorld(store);
    for (const compensate of [true, false]) {
      const outside = new Outside();
      const flow = workflow("flow", async (ctx) => {
        await outside.effect(ctx, "a");
        await outside.effect(ctx, "b");
        await ctx.step("slow", () => new Promise<never>(() => {}));
      });
      const pawl = await world.restart([flow]);
      const run = await pawl.start(flow);
      await world.settle();
      await run.cancel({ compensate, reason: "changed my mind" });
      expect(await errorOf(run.result())).toMatchObject({ code: "cancelled", fields: { reason: "changed my mind" } });
      expect(outside.log.slice(2)).toEqual(compensate ? ["undo b: b done", "undo a: a done"] : []);
      expect(await run.status()).toMatchObject({ state: "cancelled", stopReason: "cancelled" });
    }
  });

  it("C-15 an effect under way when it is cancelled may have happened: it is undone as well, or looked for", async () => {
    const world = await openWorld(store);
    const undone: unknown[] = [];
    const flow = workflow("flow", async (ctx) => {
      const hanging = (detect?: () => { found: true; value: string } | { found: false }) => ({
        do: () => new Promise<string>(() => {}),
        undo: (value: string | undefined, { undoes }: { undoes: string }) => void undone.push(`${undoes} ${value}`),
        ...(detect === undefined ? {} : { detect }),
      });
      await Promise.all([
        ctx.effect("blind", hanging()),
        ctx.effect(
          "found",
          hanging(() => ({ found: true, value: "there" })),
        ),
        ctx.effect(
          "absent",
          hanging(() => ({ found: false })),
        ),
      ]);
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    await run.cancel({ compensate: true });
    // None of them ends: each is waited for, for a while.
    await world.advance(2 * MINUTE);
    await errorOf(run.result());
    expect(undone).toEqual(["r/found there", "r/blind undefined"]);
  });

  it("E-8 a run that passes its deadline undoes what it did and fails", async () => {
    const world = await openWorld(store);
    const outside = new Outside();
    const flow = workflow({ name: "flow", deadline: "1h" }, async (ctx) => {
      await outside.effect(ctx, "a");
      await ctx.waitFor("never");
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    await world.advance(2 * HOUR);
    expect(await errorOf(run.result())).toMatchObject({ code: "deadline_exceeded" });
    expect(outside.log).toEqual(["do a", "undo a: a done"]);
  });

  it("P19 I16 a cancel that comes while it undoes does not stop that; the run ends as cancelled", async () => {
    const world = await openWorld(store);
    const outside = new Outside();
    const hold = gate();
    const flow = workflow("flow", async (ctx) => {
      await outside.effect(ctx, "a");
      await outside.effect(ctx, "b", () => hold.passed);
      throw new Error("fatal");
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    await world.settle();
    expect(await run.cancel()).toEqual({ outcome: "cancelling" });
    hold.open();
    expect(await errorOf(run.result())).toMatchObject({ code: "cancelled" });
    expect(outside.log.slice(2)).toEqual(["undo b: b done", "undo a: a done"]);
  });

  it.each([
    ["it undoes", "run.compensating"],
    ["it begins to", "run.cancelling"],
  ] as const)(
    "P19 I5 I6 a cancel with compensate that overtakes the end of a body undoes its work, also if the process is killed when %s",
    async (_, last) => {
      const world = await openWorld(store);
      const outside = new Outside();
      const flow = workflow("flow", async (ctx) => {
        await outside.effect(ctx, "a");
        await outside.effect(ctx, "b");
      });
      const commit = world.store.commit.bind(world.store);
      let cancels = 0;
      let kills = 0;
      vi.spyOn(world.store, "commit").mockImplementation(async (batch) => {
        const types = batch.runs.flatMap(({ entries }) => entries.map(({ type }) => type));
        const data = cancelText({ reason: "", compensate: true });
        if (types.includes("run.succeeded") && cancels++ === 0)
          await world.store.deliver({ to: "r", id: "cancel", kind: "cancel", name: "", data });
        const verdicts = await commit(batch);
        if (types.includes(last) && kills++ === 0) world.killAll();
        return verdicts;
      });
      const pawl = await world.open([flow]);
      await pawl.start(flow, undefined, { id: "r" });
      await world.settle();
      expect([cancels, kills]).toEqual([1, 1]);
      const second = await world.restart([flow]);
      await world.settle();
      expect(await second.get("r").status()).toMatchObject({ state: "cancelled", stopReason: "cancelled" });
      expect(outside.log).toEqual(["do a", "do b", "undo b: b done", "undo a: a done"]);
    },
  );

  it.each([
    ["while it undoes", "undoing"],
    ["while it is parked", "parked"],
  ] as const)(
    "P19 E-15 I20 code that does not follow the journal of a run that is cancelled with compensate, %s: the run ends, and lists what nobody undid",
    async (_, when) => {
      withoutColdStart("its code leaves the journal on purpose");
      const world = await openWorld(store);
      const flowOf = (name: string) =>
        workflow("flow", async (ctx) => {
          await ctx.step(name, () => 1, { undo: () => new Promise<never>(() => {}) });
          await ctx.waitFor("never");
        });
      const first = await world.open([flowOf("a")]);
      await first.start(flowOf("a"), undefined, { id: "r" });
      await world.settle();
      const cancel = (pawl: Pawl) => pawl.cancel("r", { compensate: true });
      if (when === "undoing") await cancel(first);
      await world.settle();
      const second = await world.restart([flowOf("b")]);
      await world.settle();
      if (when === "parked") await cancel(second);
      await world.settle();
      expect(await errorOf(second.get("r").result())).toMatchObject({
        code: "compensation_incomplete",
        fields: { remaining: [{ effect: "a", error: "its code does not follow the journal any more" }] },
        cause: { code: "cancelled" },
      });
      expect(await second.get("r").status()).toMatchObject({ state: "failed", stopReason: "compensation_incomplete" });
    },
  );

  it("P19 P28 I19 an undo that ends its process again and again is not begun for ever: the run ends, and lists it", async () => {
    withoutColdStart("its end was written without its body");
    const world = await openWorld(store);
    let undos = 0;
    const flow = workflow("flow", async (ctx) => {
      await ctx.step("a", () => 1, {
        undo: () => {
          undos++;
          return new Promise<never>(() => {});
        },
      });
      await ctx.waitFor("never");
    });
    let pawl = await world.open([flow]);
    await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    await pawl.cancel("r", { compensate: true });
    for (let deaths = 0; deaths < 8; deaths++) {
      await world.settle();
      pawl = await world.restart([flow]);
    }
    await world.settle();
    expect(await pawl.get("r").status()).toMatchObject({ state: "failed", stopReason: "compensation_incomplete" });
    expect(await errorOf(pawl.get("r").result())).toMatchObject({
      fields: { remaining: [{ effect: "a", error: "it ends its process again and again" }] },
    });
    expect(undos).toBeLessThan(8);
  });

  it("P12 P19 what the body left pending is dropped, and its children undo what they did", async () => {
    const world = await openWorld(store);
    const outside = new Outside();
    const child = workflow("child", async (ctx) => {
      await outside.effect(ctx, "of the child");
      await ctx.waitFor("never");
    });
    const flow = workflow("flow", async (ctx) => {
      await outside.effect(ctx, "own");
      void ctx.call(child);
      await ctx.sleep("1s");
      throw new Error("fatal");
    });
    const pawl = await world.open([child, flow]);
    const run = await pawl.start(flow);
    await world.advance(10_000);
    await errorOf(run.result());
    await world.settle();
    expect(outside.log.filter((line) => line.startsWith("undo")).toSorted()).toEqual([
      "undo of the child: of the child done",
      "undo own: own done",
    ]);
    expect(await world.store.runs({ limit: 10 })).toMatchObject([{ state: "cancelled" }, { state: "failed" }]);
  });

  it("S2-45 retry of a run that was undone begins before what was undone", async () => {
    const world = await openWorld(store);
    const outside = new Outside();
    let isBroken = true;
    const flow = workflow("flow", async (ctx) => {
      await ctx.step("first", () => outside.log.push("first"));
      await outside.effect(ctx, "a");
      await ctx.step("fatal", () => (isBroken ? Promise.reject(new Error("fatal")) : "fine now"));
      return "done";
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    await errorOf(run.result());
    isBroken = false;
    const again = await pawl.retry(run.id);
    expect(await again.result()).toBe("done");
    expect(outside.log).toEqual(["first", "do a", "undo a: a done", "do a"]);
  });

  it("CO2 P19 what a branch of the body asks for while its work is undone does not count", async () => {
    const world = await openWorld(store);
    const outside = new Outside();
    const [later, hold] = [gate(), gate()];
    let bodies = 0;
    const flow = workflow("flow", async (ctx) => {
      await outside.effect(ctx, "a", () => hold.passed);
      const branch = async () => {
        // In replay it is too late: the gate is for the first body alone.
        await later.passed.then(() => (bodies++ === 0 ? undefined : new Promise(() => {})));
        await ctx.step("late", () => outside.log.push("late"));
      };
      void branch();
      throw new Error("fatal");
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    expect(outside.log).toEqual(["do a", "undo a: a done"]);
    later.open();
    await world.settle();
    hold.open();
    expect((await errorOf(run.result())).message).toBe("fatal");
    expect(outside.log).toEqual(["do a", "undo a: a done"]);
    expect((await world.journal("r")).slice(-4)).toEqual([
      "run.compensating",
      "step.started a/undo",
      "effect.compensated a/undo",
      "run.failed",
    ]);
  });

  it("CO1 what an earlier attempt may have done is undone, though the last one was surely refused", async () => {
    const world = await openWorld(store);
    const log: string[] = [];
    const flow = workflow("flow", async (ctx, isCaught: boolean) => {
      const charge = ctx.effect("charge", {
        idempotent: true,
        do: ({ attempt }) => {
          log.push(`do ${attempt}`);
          throw attempt === 1 ? new RetryableError("connection lost") : new Error("not allowed");
        },
        undo: (value) => log.push(`undo ${value}`),
      });
      return isCaught ? charge.catch((error: Error) => error.message) : charge;
    });
    const pawl = await world.open([flow]);
    const [failing, catching] = [await pawl.start(flow, false), await pawl.start(flow, true)];
    await world.advance(HOUR);
    expect((await errorOf(failing.result())).message).toContain("not allowed");
    expect(await catching.result()).toContain("not allowed");
    expect(log.slice().sort()).toEqual(["do 1", "do 1", "do 2", "do 2", "undo undefined"]);
    expect(await failing.effects()).toMatchObject([{ status: "compensated" }]);
    expect(await catching.effects()).toMatchObject([{ status: "unknown" }]);
  });

  it("CO1 what a crash interrupted is undone, though it was surely refused when it was tried again", async () => {
    const world = await openWorld(store);
    const log: string[] = [];
    const flow = workflow("flow", async (ctx) => {
      await ctx.step("charge", ({ attempt }) => hang(log, attempt), { undo: (value) => log.push(`undo ${value}`) });
    });
    const pawl = await world.open([flow]);
    void pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    const second = await world.restart([flow]);
    expect((await errorOf(second.get("r").result())).message).toBe("not allowed");
    expect(log).toEqual(["do 1", "do 2", "undo undefined"]);
    expect(await second.get("r").effects()).toMatchObject([{ status: "compensated" }]);
  });

  it("CO1 what a person has said did not happen, and then was surely refused, is not undone", async () => {
    const world = await openWorld(store);
    const log: string[] = [];
    const flow = workflow("flow", async (ctx) => {
      await ctx.effect("charge", {
        do: ({ attempt }) => hang(log, attempt),
        undo: (value) => log.push(`undo ${value}`),
      });
    });
    const pawl = await world.open([flow]);
    void pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    const second = await world.restart([flow]);
    await world.settle();
    await second.resolve("r", "did-not-happen");
    expect((await errorOf(second.get("r").result())).message).toBe("not allowed");
    expect(log).toEqual(["do 1", "do 2"]);
    expect(await second.get("r").effects()).toMatchObject([{ status: "failed" }]);
  });

  it("P3 a body that succeeds in replay where it had failed is parked, not undone again", async () => {
    withoutColdStart("its code leaves the journal on purpose");
    const world = await openWorld(store);
    const outside = new Outside();
    const hold = gate();
    const make = (fails: boolean) =>
      workflow("flow", async (ctx) => {
        await outside.effect(ctx, "a", () => hold.passed);
        if (fails) throw new Error("fatal");
      });
    const pawl = await world.open([make(true)]);
    void pawl.start("flow", undefined, { id: "r", version: "1.0.0" });
    await world.settle();
    const second = await world.restart([make(false)]);
    await world.settle();
    expect((await second.get("r").status()).parked).toMatchObject({ reason: "replay_drift" });
  });
});
