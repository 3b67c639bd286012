import { describe, expect, it } from "vitest";
import { RetryableError } from "../../src/base/errors.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { EffectOptions, EffectSpec } from "../../src/core/effect.ts";
import { ERROR_CATEGORIES, type ErrorCategory } from "../../src/core/error-category.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, HOUR, openWorld, STORES, type World } from "./harness.ts";

/** A bank that keeps what it was asked for, by key. */
class Bank {
  readonly charges: string[] = [];
  readonly refunds: unknown[] = [];

  charge(key: string): string {
    this.charges.push(key);
    return `payment ${key}`;
  }

  find(key: string) {
    return this.charges.includes(key) ? { found: true as const, value: `payment ${key}` } : { found: false as const };
  }
}

/** A workflow that charges, and loses its process right after the bank has heard of it, or before. */
function charging(
  world: World,
  bank: Bank,
  how: Partial<EffectSpec<string>>,
  options?: EffectOptions,
  hasHappened = true,
) {
  const victim: { pawl?: Pawl | undefined } = {};
  const flow = workflow("charging", async (ctx) => {
    const payment = await ctx.effect(
      "charge",
      {
        do: ({ key }) => {
          const { pawl } = victim;
          delete victim.pawl;
          if (pawl !== undefined && !hasHappened) world.kill(pawl);
          if (pawl !== undefined && !hasHappened) return new Promise<never>(() => {});
          const value = bank.charge(key);
          if (pawl !== undefined) world.kill(pawl);
          return value;
        },
        ...how,
      },
      options,
    );
    return payment;
  });
  const crash = async () => {
    victim.pawl = await world.open([flow]);
    void victim.pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    return world.restart([flow]);
  };
  return { flow, crash };
}

describe.each(STORES)("an effect on %s", (store) => {
  it("S2-39 S2-6 T-15 is planned before it begins, then executed, with the key that it was given", async () => {
    const world = await openWorld(store);
    let during: unknown[] = [];
    const flow = workflow("flow", async (ctx) =>
      ctx.effect("charge", {
        class: "execute",
        idempotent: true,
        do: async ({ key }) => {
          during = (await world.store.journal("r")).map(({ type }) => type);
          return `paid ${key}`;
        },
        undo: () => {},
      }),
    );
    const pawl = await world.open([flow]);
    expect(await pawl.run(flow, undefined, { id: "r" })).toBe("paid r/charge");
    expect(during).toEqual(["run.started", "effect.planned"]);
    expect(await world.journal("r")).toEqual([
      "run.started",
      "effect.planned charge",
      "effect.executed charge",
      "run.succeeded",
    ]);
    expect(await pawl.get("r").effects()).toMatchObject([
      {
        effect: "charge",
        status: "executed",
        class: "execute",
        key: "r/charge",
        guard: "idempotent",
        undo: true,
        attempts: 1,
        value: "paid r/charge",
      },
    ]);
  });

  it("C-18 S0-37 has a key of its step, of its run, or of the business", async () => {
    const world = await openWorld(store);
    const keys: string[] = [];
    const spec = { class: "draft" as const, do: ({ key }: { key: string }) => void keys.push(key) };
    const flow = workflow("flow", async (ctx) => {
      await ctx.effect("a", spec);
      await ctx.effect("a", { ...spec, keyScope: "run" });
      await ctx.effect("a", { ...spec, key: "order-17" });
    });
    const pawl = await world.open([flow]);
    await pawl.run(flow, undefined, { id: "r" });
    expect(keys).toEqual(["r/a", "r", "order-17"]);
    expect((await pawl.get("r").effects()).map(({ effect }) => effect)).toEqual(["a", "a#2", "a#3"]);
  });

  it.each([
    ["that happened is found, and not done again", true, ["r/charge"]],
    ["that did not happen is looked for, and done", false, ["r/charge"]],
  ])("C-3 I6 with a detector, one %s", async (_, hasHappened, charges) => {
    const world = await openWorld(store);
    const bank = new Bank();
    const { crash } = charging(world, bank, { detect: ({ key }) => bank.find(key) }, {}, hasHappened);
    const pawl = await crash();
    expect(await pawl.get("r").result()).toBe("payment r/charge");
    expect(bank.charges).toEqual(charges);
    expect(await pawl.get("r").effects()).toMatchObject([{ status: "executed", guard: "detect", attempts: 2 }]);
  });

  it("C-3 C-18 S2-49 one that the outside recognises runs again with the same key", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const { crash } = charging(world, bank, { idempotent: true });
    const pawl = await crash();
    await pawl.get("r").result();
    expect(bank.charges).toEqual(["r/charge", "r/charge"]);
  });

  it.each([
    ["happened", "payment 7", "payment 7", 1],
    ["did-not-happen", undefined, "payment r/charge", 2],
  ])(
    "C-3 E-26 S2-50 an unguarded one parks the run; a person says that it %s",
    async (choice, value, result, charges) => {
      const world = await openWorld(store);
      const bank = new Bank();
      const { crash } = charging(world, bank, {});
      const pawl = await crash();
      await pawl.idle();
      const { parked } = await pawl.get("r").status();
      expect(parked).toMatchObject({
        reason: "unknown_outcome",
        choices: ["happened", "did-not-happen", "compensate", "abort"],
        detail: { step: "charge", key: "r/charge" },
      });
      expect(await pawl.get("r").effects()).toMatchObject([{ status: "unknown" }]);
      expect(bank.charges.length).toBe(1);
      await pawl.resolve("r", { choice, value });
      expect(await pawl.get("r").result()).toBe(result);
      expect(bank.charges).toHaveLength(charges);
      expect(await pawl.get("r").effects()).toMatchObject([{ status: "executed", value: result }]);
    },
  );

  it.each([
    ["compensate", ["r/charge of undefined"], "compensated"],
    ["abort", [], "unknown"],
  ])("C-3 E-26 a person may %s instead", async (choice, refunds, status) => {
    const world = await openWorld(store);
    const bank = new Bank();
    const undo = (value: string | undefined, { undoes }: { undoes: string }) =>
      void bank.refunds.push(`${undoes} of ${value}`);
    const { crash } = charging(world, bank, { undo });
    const pawl = await crash();
    await pawl.idle();
    await pawl.resolve("r", { choice });
    expect(await errorOf(pawl.get("r").result())).toMatchObject({ code: "cancelled" });
    expect(bank.refunds).toEqual(refunds);
    expect(await pawl.get("r").effects()).toMatchObject([{ status }]);
  });

  it.each([
    ["fail", [], "unknown"],
    ["compensate", ["refund"], "compensated"],
  ] as const)('C-3 recovery "%s" ends the run', async (recovery, refunds, status) => {
    const world = await openWorld(store);
    const bank = new Bank();
    const undo = recovery === "compensate" ? { undo: () => void bank.refunds.push("refund") } : {};
    const { crash } = charging(world, bank, undo, { recovery });
    const pawl = await crash();
    expect(await errorOf(pawl.get("r").result())).toMatchObject({ code: "step_interrupted" });
    expect(bank.charges).toHaveLength(1);
    expect(bank.refunds).toEqual(refunds);
    expect(await pawl.get("r").effects()).toMatchObject([{ status }]);
  });

  it("X-26 is undone at once, or when retries are used up, by the category of the error that its run fails with", async () => {
    const world = await openWorld(store);
    const errors: Readonly<Record<ErrorCategory, () => unknown>> = {
      transient: () => new RetryableError("again"),
      dependency: () => Object.assign(new Error("refused"), { code: "ECONNREFUSED" }),
      resource: () => Object.assign(new Error("disk full"), { code: "ENOSPC" }),
      validation: () => Object.assign(new Error("bad request"), { status: 400 }),
      logic: () => new TypeError("x is not a function"),
    };
    const log: string[] = [];
    const flow = workflow({ name: "flow", retry: { max: 2, jitter: false } }, async (ctx, category: ErrorCategory) => {
      const undo = () => void log.push("undo");
      await ctx.effect("charge", { idempotent: true, do: () => void log.push("do"), undo });
      await ctx.step("fails", () => {
        log.push("try");
        throw errors[category]();
      });
    });
    const pawl = await world.open([flow]);
    for (const category of Object.keys(errors) as ErrorCategory[]) {
      const run = await pawl.start(flow, category);
      await world.advance(HOUR);
      await errorOf(run.result());
      const tries = ERROR_CATEGORIES[category].compensate === "at once" ? ["try"] : ["try", "try", "try"];
      expect(log.splice(0), category).toEqual(["do", ...tries, "undo"]);
    }
  });

  it("E-13 S2-50 S2-67 an unguarded write is never retried by itself: a lost answer parks the run", async () => {
    const world = await openWorld(store);
    let tries = 0;
    const flow = workflow("flow", async (ctx) =>
      ctx.effect("send", {
        do: () => {
          tries++;
          throw new RetryableError("connection lost");
        },
      }),
    );
    const pawl = await world.open([flow]);
    await pawl.start(flow, undefined, { id: "r" });
    await world.advance(100_000);
    expect(tries).toBe(1);
    const { parked } = await pawl.get("r").status();
    expect(parked?.message).toContain("connection lost");
    expect(await pawl.get("r").effects()).toMatchObject([{ status: "unknown", error: "connection lost" }]);
    await pawl.resolve("r", { choice: "happened", value: "sent" });
    expect(await pawl.get("r").result()).toBe("sent");
    expect(tries).toBe(1);
  });

  it("E-13 S2-50 retries that were asked for are refused at the call, and so is a blind rerun; with a guard they are made", async () => {
    const world = await openWorld(store);
    let tries = 0;
    const spec = {
      do: () => {
        if (++tries < 3) throw new RetryableError("not yet");
        return "done";
      },
    };
    const flow = workflow("flow", async (ctx) => {
      const errors = [
        await errorOf(Promise.resolve().then(() => ctx.effect("a", spec, { retry: { max: 3 } }))),
        await errorOf(Promise.resolve().then(() => ctx.effect("b", spec, { recovery: "rerun" }))),
      ];
      const done = await ctx.effect("c", { ...spec, idempotent: true }, { retry: { max: 3 } });
      return [...errors.map((error) => error["code"]), done, tries];
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    await world.advance(200_000);
    expect(await run.result()).toEqual(["unsafe_retry", "unsafe_retry", "done", 3]);
  });

  it("E-13 with recovery fail an answer that was lost fails the effect, and says why it was not tried again", async () => {
    const world = await openWorld(store);
    const spec = {
      do: () => {
        throw new RetryableError("connection lost");
      },
    };
    const flow = workflow("flow", async (ctx) => ctx.effect("send", spec, { recovery: "fail" }));
    const pawl = await world.open([flow]);
    const error = await errorOf(pawl.run(flow));
    expect(error).toMatchObject({ code: "unsafe_retry", cause: { message: "connection lost" } });
  });

  it("T-15 the ledger keeps what earlier generations of a run have done", async () => {
    const world = await openWorld(store);
    const bank = new Bank();
    const flow = workflow("flow", async (ctx, round: number) => {
      await ctx.effect("charge", { idempotent: true, do: ({ key }) => bank.charge(key) });
      return round < 3 ? ctx.continueAs(round + 1) : "done";
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, 1, { id: "r" });
    expect(await run.result()).toBe("done");
    expect(bank.charges).toHaveLength(3);
    expect((await run.effects()).map(({ key, status }) => `${key} ${status}`)).toEqual(
      bank.charges.map((key) => `${key} executed`),
    );
  });

  it("T-15 an action in a map that is named like an undo has a line of its own in the ledger", async () => {
    const world = await openWorld(store);
    const flow = workflow("flow", async (ctx, isToFail: boolean) => {
      const done = ctx.map(["a"], async () => ctx.effect("undo", { idempotent: true, do: () => 1, undo: () => {} }));
      const [first] = await done;
      if (isToFail) throw new Error("fatal");
      return first;
    });
    const pawl = await world.open([flow]);
    for (const isToFail of [false, true]) {
      const run = await pawl.start(flow, isToFail);
      await run.result().catch(() => {});
      expect(await run.effects()).toMatchObject([{ value: 1, status: isToFail ? "compensated" : "executed" }]);
    }
  });

  it.each([
    [{}, /needs a function `do`/],
    [{ do: Math.random, detect: 1 }, /`detect` is a function/],
    [{ do: Math.random, class: "delete" }, /`class` is "delete"/],
    [{ do: Math.random, keyScope: "business" }, /`keyScope` is "business"/],
    [{ do: Math.random, key: "a#1" }, /key of ctx.effect/],
  ])("S0-25 refuses %o", async (spec, message) => {
    const world = await openWorld(store);
    const flow = workflow("flow", async (ctx) => ctx.effect("x", spec as never));
    const pawl = await world.open([flow]);
    expect((await errorOf(pawl.run(flow))).message).toMatch(message);
  });
});
