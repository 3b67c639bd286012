import { describe, expect, it } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import type { StepOptions } from "../../src/core/context.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, openWorld, STORES, type World } from "./harness.ts";

type Recovery = NonNullable<StepOptions["recovery"]>;

/** A workflow whose step takes effect and then loses its process, once. */
function interrupted(world: World, recovery: Recovery) {
  const effects: string[] = [];
  const victim: { pawl?: Pawl } = {};
  const flow = workflow("interrupted", async (ctx) => {
    const value = await ctx.step(
      "charge",
      ({ key, attempt }) => {
        effects.push(`${key} ${attempt}`);
        if (victim.pawl !== undefined) world.kill(victim.pawl);
        delete victim.pawl;
        return `charged ${attempt}`;
      },
      { recovery },
    );
    return value;
  });
  const crash = async () => {
    victim.pawl = await world.open([flow]);
    // Its answer never comes: the process is gone by then.
    void victim.pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    return world.restart([flow]);
  };
  return { flow, effects, crash };
}

describe.each(STORES)("an interrupted step on %s", (store) => {
  it("S3-9 C-3 runs again by default, visibly as attempt 2 with the same key", async () => {
    const world = await openWorld(store);
    const { effects, crash } = interrupted(world, "rerun");
    const pawl = await crash();
    expect(await pawl.get("r").result()).toBe("charged 2");
    expect(effects).toEqual(["r/charge 1", "r/charge 2"]);
    const [, first, second] = await pawl.get("r").journal();
    expect([first?.payload, second?.payload]).toEqual([null, { attempt: 2, rerun: true }]);
  });

  it("P28 begins again only once that is recorded", async () => {
    const world = await openWorld(store);
    let seen: unknown[] = [];
    const flow = workflow("flow", async (ctx) =>
      ctx.step("s", async ({ attempt }) => {
        if (attempt === 1) return new Promise<never>(() => {});
        seen = (await world.store.journal("r")).map(({ type, data }) => [type, data]);
        return "done";
      }),
    );
    await (await world.open([flow])).start(flow, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([flow]);
    expect(await pawl.get("r").result()).toBe("done");
    expect(seen.slice(1)).toEqual([
      ["step.started", null],
      ["step.started", expect.stringMatching(/"attempt":2.*"rerun":true/)],
    ]);
  });

  it("S3-9 P28 uses up no retry by that", async () => {
    const world = await openWorld(store);
    const attempts: number[] = [];
    // An engine may be at work before it is in hand, and one that is killed then would never come to hand.
    const inHand = [gate(), gate()];
    const flow = workflow({ name: "r0", retry: { max: 1, jitter: false, on: "any" } }, async (ctx) =>
      ctx.step("s", async ({ attempt }) => {
        attempts.push(attempt);
        await inHand[attempt - 1]?.passed;
        if (attempt < 3) world.killAll();
        if (attempt < 4) throw new Error("fails");
        return "ok";
      }),
    );
    const first = await world.open([flow]);
    void first.start(flow, undefined, { id: "r" });
    inHand[0]?.open();
    await world.settle();
    await world.restart([flow]);
    inHand[1]?.open();
    await world.settle();
    const pawl = await world.restart([flow]);
    await world.advance(10_000);
    expect(await pawl.get("r").result()).toBe("ok");
    expect(attempts).toEqual([1, 2, 3, 4]);
  });

  it('C-3 fails with recovery "fail", and does not run it again', async () => {
    const world = await openWorld(store);
    const { effects, crash } = interrupted(world, "fail");
    const pawl = await crash();
    const error = await errorOf(pawl.get("r").result());
    expect(error).toMatchObject({ code: "step_interrupted", fields: { run: "r", step: "charge", attempt: 1 } });
    expect(effects).toHaveLength(1);
  });

  it('C-3 E-26 parks with recovery "ask", saying what, why, the key and the choices', async () => {
    const world = await openWorld(store);
    const { effects, crash } = interrupted(world, "ask");
    const pawl = await crash();
    await pawl.idle();
    const status = await pawl.get("r").status();
    expect(status).toMatchObject({ status: "waiting", state: "parked", owner: null });
    expect(status.parked).toMatchObject({
      reason: "unknown_outcome",
      choices: ["rerun", "complete", "fail", "cancel"],
      detail: { step: "charge", attempt: 1, key: "r/charge" },
    });
    expect(status.parked?.message).toContain("r/charge");
    expect(effects).toHaveLength(1);
    // Restarts do not decide for the person.
    const later = await world.restart([]);
    await later.idle();
    expect((await later.get("r").status()).state).toBe("parked");
    expect(effects).toHaveLength(1);
  });

  it.each([
    ["rerun", { choice: "rerun" }, "charged 2", 2],
    ["complete", { choice: "complete", value: { id: 7n } }, { id: 7n }, 1],
  ])("E-26 goes on after %s", async (_name, choice, result, starts) => {
    const world = await openWorld(store);
    const { effects, crash } = interrupted(world, "ask");
    const pawl = await crash();
    await pawl.idle();
    await pawl.resolve("r", choice);
    expect(await pawl.get("r").result()).toEqual(result);
    expect(effects).toHaveLength(starts);
    expect(await world.journal("r")).toContain("run.resolved");
    expect((await pawl.get("r").status()).waits).toEqual([]);
  });

  it("E-26 fails the step after fail, and cancels the run after cancel", async () => {
    const world = await openWorld(store);
    const { crash, effects } = interrupted(world, "ask");
    const pawl = await crash();
    await pawl.idle();
    await pawl.resolve("r", { choice: "fail", value: "it bounced" });
    const error = await errorOf(pawl.get("r").result());
    expect(error).toMatchObject({ code: "step_interrupted" });
    expect(error.message).toContain("it bounced");
    expect(effects).toHaveLength(1);
  });

  it("E-26 cancels the run after cancel, without its body", async () => {
    const world = await openWorld(store);
    const { crash, effects } = interrupted(world, "ask");
    const pawl = await crash();
    await pawl.idle();
    await pawl.resolve("r", "cancel");
    expect(await errorOf(pawl.get("r").result())).toMatchObject({ code: "cancelled" });
    expect(effects).toHaveLength(1);
  });

  it("X-17 takes one decision: the same again changes nothing, another one is told what was decided, and a choice that is none is refused", async () => {
    const world = await openWorld(store);
    const { crash } = interrupted(world, "ask");
    const pawl = await crash();
    await pawl.idle();
    expect(await errorOf(pawl.resolve("r", "guess"))).toMatchObject({ code: "invalid_argument" });
    const complete = (value: string) => pawl.resolve("r", { choice: "complete", value });
    const calls = [complete("first"), complete("first"), complete("second"), pawl.resolve("r", "fail")];
    const [first, , second, other] = await Promise.allSettled(calls);
    const result = await pawl.get("r").result().catch(String);
    // Calls that are made together may reach a database in any order.
    if (store !== "postgres" || first?.status === "fulfilled") {
      expect(second).toMatchObject({
        reason: {
          code: "idempotency_conflict",
          message: expect.stringMatching(/resolved with "complete" with another value/),
        },
      });
      expect(other).toMatchObject({
        reason: { code: "idempotency_conflict", fields: { run: "r", choice: "fail", decided: "complete" } },
      });
      expect(result).toBe("first");
    } else expect([second?.status, other?.status]).toContain("fulfilled");
    expect((await world.journal("r")).filter((line) => line === "run.resolved")).toHaveLength(1);
    expect(await errorOf(pawl.resolve("r", "rerun"))).toMatchObject({ code: "invalid_argument" });
  });

  it("E-26 asks about each of two interrupted steps, and starts nothing before both are decided", async () => {
    const world = await openWorld(store);
    const starts: string[] = [];
    const hold = gate();
    const pair = workflow("pair", async (ctx) => {
      const part = (name: string, recovery: Recovery) =>
        ctx.step(
          name,
          async ({ attempt }) => {
            starts.push(`${name} ${attempt}`);
            if (attempt === 1) await hold.passed;
            return name;
          },
          {
            recovery,
          },
        );
      return Promise.all([part("a", "ask"), part("b", "ask"), part("c", "rerun")]);
    });
    await (await world.open([pair])).start(pair, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([pair]);
    await pawl.idle();
    expect((await pawl.get("r").status()).parked?.detail).toMatchObject({ step: "a" });
    await pawl.resolve("r", { choice: "complete", value: "A" });
    await pawl.idle();
    expect((await pawl.get("r").status()).parked?.detail).toMatchObject({ step: "b" });
    expect(starts).toEqual(["a 1", "b 1", "c 1"]);
    await pawl.resolve("r", "rerun");
    expect(await pawl.get("r").result()).toEqual(["A", "b", "c"]);
    expect(starts.slice(3).toSorted()).toEqual(["b 2", "c 2"]);
  });

  it("S3-9 does not rerun a step that was started before and completed while others hung", async () => {
    const world = await openWorld(store);
    const starts: Record<string, number> = {};
    const hold = gate<string>();
    const both = workflow("both", async (ctx) => {
      const part = (name: string, value: () => unknown) =>
        ctx.step(name, () => {
          starts[name] = (starts[name] ?? 0) + 1;
          return value();
        });
      return Promise.all([
        part("done", () => "done"),
        part("hangs", () => (starts["hangs"] === 1 ? hold.passed : "again")),
      ]);
    });
    await (await world.open([both])).start(both, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([both]);
    expect(await pawl.get("r").result()).toEqual(["done", "again"]);
    expect(starts).toEqual({ done: 1, hangs: 2 });
  });
});

describe.each(STORES)("a dead worker on %s", (store) => {
  // Thousands where that many rows are most likely to be left; the others show the same with fewer.
  const [left, room] = store === "sqlite" ? [5000, 1024] : [500, 128];

  it(`B14 I11 leaves ${left} runs of 42 workflows: as many go on at once as there is room for, then the rest`, async () => {
    const world = await openWorld(store);
    const hold = gate();
    let begun = 0;
    const workflows = Array.from({ length: 42 }, (_, kind) =>
      workflow(`kind${kind}`, async (ctx) =>
        ctx.step("s", ({ attempt }) => {
          if (attempt === 1) return new Promise<never>(() => {});
          begun++;
          return hold.passed;
        }),
      ),
    );
    const first = await world.open(workflows, { concurrency: left });
    await Promise.all(Array.from({ length: left }, (_, n) => first.start(workflows[n % 42] as (typeof workflows)[0])));
    await world.settle();
    const pawl = await world.restart(workflows, { concurrency: room });
    await world.settle();
    expect(begun).toBe(room);
    hold.open();
    await pawl.idle();
    expect(begun).toBe(left);
    const states = ["running", "accepted", "waiting", "parked", "failed"] as const;
    expect(await world.store.runs({ states, limit: 9 })).toEqual([]);
  }, 120_000);
});
