import { describe, expect, it } from "vitest";
import { Pawl } from "../../src/client/pawl.ts";
import { why } from "../../src/client/why.ts";
import type { BudgetOptions } from "../../src/core/budget.ts";
import type { Context } from "../../src/core/context.ts";
import type { StoredEntry } from "../../src/core/journal.ts";
import { workflow } from "../../src/core/workflow.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";
import { errorOf, gate, HOUR, nextRound, openWorld, STORES } from "./harness.ts";

/** A workflow that pays for so many calls, one after the other; what it paid for is noted outside. */
function paying(calls: number, budget: BudgetOptions | undefined, spend = { usd: 0.4, tokens: 100 }) {
  const paid: string[] = [];
  const pay = (ctx: Context, name: string) =>
    ctx.step(
      name,
      () => {
        paid.push(name);
        return name;
      },
      { spend },
    );
  const flow = workflow({ name: "paying", ...(budget !== undefined && { budget }) }, async (ctx) => {
    await ctx.step("free", () => 0);
    for (let i = 1; i <= calls; i++) await pay(ctx, `call-${i}`);
    return paid.length;
  });
  return { flow, paid };
}

describe.each(STORES)("a budget on %s", (store) => {
  it.each([
    ["usd", { usd: 1 }, { limit: 1, used: 0.8, asked: 0.4 }],
    ["tokens", { tokens: 250 }, { limit: 250, used: 200, asked: 100 }],
    ["calls", { calls: 2 }, { limit: 2, used: 2, asked: 1 }],
    ["a unit of one's own", { pages: 5 }, { limit: 5, used: 4, asked: 2 }],
  ] as const)(
    "X-13 E-9 I26 %s: stops the run before the call that it has no room for",
    async (_unit, budget, refusal) => {
      const world = await openWorld(store);
      const { flow, paid } = paying(3, budget, {
        usd: 0.4,
        tokens: 100,
        ...("pages" in budget && { pages: 2 }),
      } as never);
      const pawl = await world.open([flow]);
      const run = await pawl.start(flow, undefined, { id: "r" });
      await pawl.idle();
      const status = await run.status();
      const [unit] = Object.keys(budget);
      expect(status).toMatchObject({
        state: "parked",
        parked: { reason: "budget_exceeded", choices: ["raise", "fail", "cancel"] },
      });
      expect(status.parked?.detail).toEqual({ budget: "r", unit, ...refusal, steps: ["call-3"] });
      expect(status.parked?.message).toContain(
        `of the ${refusal.limit} ${unit} in the budget of run r, ${refusal.used} are spent or reserved`,
      );
      expect(paid).toEqual(["call-1", "call-2"]);
      expect(status.budget).toEqual({
        run: "r",
        limits: { [unit as string]: refusal.limit },
        spent: { [unit as string]: refusal.used },
        reserved: { [unit as string]: 0 },
      });
      expect((await world.journal(run)).slice(-3)).toEqual([
        "step.started call-3",
        "step.refused call-3",
        "run.parked",
      ]);
      const { summary, present, next } = await why(pawl, "r");
      expect(summary).toContain("is parked (budget_exceeded)");
      expect(present).toContain(`Its budget: ${refusal.used} of ${refusal.limit} ${unit} spent.`);
      expect(next[0]).toBe("pawl resolve r raise --value '<new limits as JSON>'");
    },
  );

  it("X-13 time: counts from when the run began, and is looked at before each call", async () => {
    const world = await openWorld(store);
    const flow = workflow({ name: "slow", budget: { time: "2h" } }, async (ctx) => {
      for (let i = 1; i <= 3; i++) {
        await ctx.step("call", () => i, { spend: {} });
        await ctx.sleep("1h 30m");
      }
      return "done";
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.advance(4 * HOUR);
    const { parked, budget } = await run.status();
    expect(parked?.detail).toMatchObject({ unit: "time", limit: 2 * HOUR, used: 3 * HOUR, steps: ["call#3"] });
    expect(parked?.message).toContain(`allows ${2 * HOUR} ms`);
    expect(budget?.spent).toEqual({ time: 4 * HOUR });
    await pawl.resolve("r", { choice: "raise", value: { time: "10h" } });
    await world.advance(2 * HOUR);
    expect(await run.result()).toBe("done");
  });

  it('E-9 with onExceeded "fail" the call rejects, and the run may go on without it', async () => {
    const world = await openWorld(store);
    const flow = workflow({ name: "failing", budget: { usd: 0.5, onExceeded: "fail" } }, async (ctx) => {
      await ctx.step("dear", () => 1, { spend: { usd: 0.4 } });
      try {
        await ctx.step("dearer", () => 2, { spend: { usd: 0.2 } });
      } catch (error) {
        return [(error as { code: string }).code, await ctx.step("cheap", () => 3, { spend: { usd: 0.1 } })];
      }
      return [];
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    expect(await run.result()).toEqual(["budget_exceeded", 3]);
    expect((await run.status()).budget).toMatchObject({ spent: { usd: 0.5 }, reserved: { usd: 0 } });
    const uncaught = paying(2, { usd: 0.5, onExceeded: "fail" });
    const other = await world.open([uncaught.flow]);
    const error = await errorOf(other.run(uncaught.flow));
    expect(error).toMatchObject({
      code: "budget_exceeded",
      fields: { unit: "usd", limit: 0.5, used: 0.4, asked: 0.4 },
    });
    expect(uncaught.paid).toEqual(["call-1"]);
  });

  it("X-13 I26 raised after a restart, the run goes on where it stood and begins nothing twice", async () => {
    const world = await openWorld(store);
    const { flow, paid } = paying(4, { usd: 1 });
    const first = await world.open([flow]);
    await first.start(flow, undefined, { id: "r" });
    await first.idle();
    const pawl = await world.restart([flow]);
    const invalid = await errorOf(pawl.resolve("r", { choice: "raise", value: { usd: 1 } }));
    expect(invalid).toMatchObject({ code: "invalid_argument" });
    await pawl.resolve("r", { choice: "raise", value: { usd: 1.5 } });
    await pawl.idle();
    expect(paid).toEqual(["call-1", "call-2", "call-3"]);
    expect((await pawl.get("r").status()).parked?.detail).toMatchObject({ limit: 1.5, used: 1.2, steps: ["call-4"] });
    await pawl.resolve("r", { choice: "raise", value: { usd: 2 } });
    expect(await pawl.get("r").result()).toBe(4);
    expect((await pawl.get("r").status()).budget).toMatchObject({ limits: { usd: 2 }, spent: { usd: 1.6 } });
    expect(await world.journal("r")).toContain("step.reserved call-4");
  });

  it("E-9 I16 a person may let the call fail, or cancel the run", async () => {
    const world = await openWorld(store);
    const { flow, paid } = paying(3, { usd: 1 });
    const pawl = await world.open([flow]);
    for (const id of ["f", "c"]) await pawl.start(flow, undefined, { id });
    await pawl.idle();
    await pawl.resolve("f", "fail");
    expect(await errorOf(pawl.get("f").result())).toMatchObject({ code: "budget_exceeded" });
    await pawl.resolve("c", "cancel");
    expect(await errorOf(pawl.get("c").result())).toMatchObject({ code: "cancelled" });
    expect(paid).toHaveLength(4);
  });

  it("X-13 a step says what it really spent: less gives room to others, more is counted as well", async () => {
    const world = await openWorld(store);
    const flow = workflow({ name: "honest", budget: { usd: 1, tokens: 1000 } }, async (ctx) => {
      for (const usd of [0.1, 0.1, 0.1])
        await ctx.step("less", (info) => info.spent({ usd, tokens: 7 }), { spend: { usd: 0.5, tokens: 100 } });
      await ctx.step("more", (info) => info.spent({ usd: 0.9 }), { spend: { usd: 0.5, tokens: 100 } });
      await ctx.step("unasked", (info) => info.spent({ usd: 0.05, grams: 3 }));
      return "done";
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    expect(await run.result()).toBe("done");
    const { budget, cost } = await run.status();
    expect(budget).toMatchObject({ spent: { usd: 1.25, tokens: 121 }, reserved: { usd: 0, tokens: 0 } });
    expect(cost?.["usd"]).toBeCloseTo(1.25, 9);
    expect(cost).toMatchObject({ tokens: 121, grams: 3 });
  });

  it("X-13 without a budget, what steps spend is the run's cost, beside what ctx.cost adds, after a restart as well", async () => {
    const world = await openWorld(store);
    const flow = workflow("costly", async (ctx) => {
      await ctx.step("a", (info) => info.spent({ usd: 2 }), { spend: { usd: 5, tokens: 10 } });
      ctx.cost({ usd: 1 });
      await ctx.waitFor("go");
      await ctx.step("b", () => 0, { spend: { usd: 4 } });
    });
    await (await world.open([flow])).start(flow, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([flow]);
    await pawl.signal("r", "go");
    await pawl.get("r").result();
    expect((await pawl.get("r").status()).cost).toEqual({ usd: 7, tokens: 10 });
    expect((await pawl.get("r").status()).budget).toBeUndefined();
  });

  it("X-13 T-23 each failed attempt keeps what it says it spent, or else what it reserved", async () => {
    const world = await openWorld(store);
    const flow = workflow(
      { name: "failing", budget: { usd: 10, calls: 9 }, retry: { jitter: false, on: "any" } },
      (ctx) =>
        ctx.step(
          "s",
          (info) => {
            if (info.attempt === 1) info.spent({ usd: 0.25 });
            if (info.attempt < 3) throw new Error("again");
            return "done";
          },
          { spend: { usd: 1 } },
        ),
    );
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    await world.advance(HOUR);
    expect(await run.result()).toBe("done");
    expect((await run.status()).budget).toMatchObject({
      spent: { usd: 2.25, calls: 3 },
      reserved: { usd: 0, calls: 0 },
    });
  });

  it("X-13 I6 after a crash between reserving and outcome, the rerun uses what is reserved", async () => {
    const world = await openWorld(store);
    const flow = workflow({ name: "crashing", budget: { usd: 1 } }, (ctx) =>
      ctx.step(
        "s",
        ({ attempt, spent }) => {
          if (attempt === 1) return new Promise<never>(() => {});
          spent({ usd: 0.5 });
          return attempt;
        },
        { spend: { usd: 0.8 } },
      ),
    );
    await (await world.open([flow])).start(flow, undefined, { id: "r" });
    await world.settle();
    const reader = await world.open();
    expect((await reader.get("r").status()).budget).toMatchObject({ spent: { usd: 0 }, reserved: { usd: 0.8 } });
    const pawl = await world.restart([flow]);
    expect(await pawl.get("r").result()).toBe(2);
    expect((await pawl.get("r").status()).budget).toMatchObject({ spent: { usd: 0.5 }, reserved: { usd: 0 } });
  });

  it("X-13 D-10 cancelled while a call is under way, what was reserved counts as spent", async () => {
    const world = await openWorld(store);
    const begun = gate();
    const flow = workflow({ name: "cancelled", budget: { usd: 1 } }, (ctx) =>
      ctx.step(
        "s",
        async ({ signal }) => {
          begun.open();
          await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
        },
        { spend: { usd: 0.8 } },
      ),
    );
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await begun.passed;
    await run.cancel();
    await errorOf(run.result());
    expect(await run.status()).toMatchObject({
      budget: { spent: { usd: 0.8 }, reserved: { usd: 0 } },
      cost: { usd: 0.8 },
    });
  });
});

/** A store that keeps a commit waiting if `isHeld` says so, and tells when there is one. */
function holding(isHeld: (entry: StoredEntry) => boolean) {
  const [asked, answered] = [gate(), gate()];
  const inner = memoryStore();
  const commit: typeof inner.commit = async (batch) => {
    if (batch.runs.some(({ entries }) => entries.some(isHeld))) {
      asked.open();
      await answered.passed;
    }
    return inner.commit(batch);
  };
  return { store: { ...inner, commit }, asked, answered };
}

it("SP4 a call that was refused, and that its run did not wait for when there was room, has spent nothing", async () => {
  const { store, asked, answered } = holding(({ type }) => type === "step.reserved");
  const paid: string[] = [];
  const flow = workflow({ name: "flow", budget: { usd: 1 } }, async (ctx) => {
    const dear = ctx.step("dear", () => paid.push("dear"), { spend: { usd: 2 } });
    await Promise.race([dear, ctx.waitFor("go")]);
  });
  const pawl = await Pawl.open(store, { workflows: [flow], handleSignals: false });
  const run = await pawl.start(flow, undefined, { id: "r" });
  await pawl.idle();
  await run.signal("go");
  await pawl.resolve("r", { choice: "raise", value: { usd: 5 } });
  await asked.passed;
  for (let round = 0; round < 20; round++) await nextRound();
  answered.open();
  await run.result();
  expect(paid).toEqual([]);
  const { cost, budget } = await run.status();
  expect(cost?.["usd"] ?? 0).toBe(0);
  expect(budget).toMatchObject({ spent: { usd: 0 }, reserved: { usd: 0 } });
  await pawl.close();
});

it("SP2 I26 a run that ends while its reservation is refused gives back nothing that it never had", async () => {
  const { store, asked, answered } = holding(({ key }) => key === "dear");
  const slow = gate();
  const flow = workflow({ name: "flow", budget: { usd: 1 } }, async (ctx) => {
    const slowly = ctx.step("slow", () => slow.passed);
    await ctx.step("paid", () => 0, { spend: { usd: 0.8 } });
    void ctx.step("dear", () => 0, { spend: { usd: 0.5 } });
    await slowly;
    return "ended";
  });
  const pawl = await Pawl.open(store, { workflows: [flow], handleSignals: false });
  const run = await pawl.start(flow, undefined, { id: "r" });
  await asked.passed;
  slow.open();
  for (let round = 0; round < 20; round++) await nextRound();
  answered.open();
  expect(await run.result()).toBe("ended");
  expect((await run.status()).budget).toMatchObject({ spent: { usd: 0.8 }, reserved: { usd: 0 } });
  await pawl.close();
});

it("SP2 P2 what a run has written while its reservation was under way follows the refused batch, and nothing of it is lost", async () => {
  const asked = gate();
  const answered = gate();
  const slow = gate();
  const inner = memoryStore();
  const store = new Proxy(inner, {
    get: (target, name: keyof typeof inner) =>
      name !== "commit"
        ? target[name]
        : async (commit: Parameters<typeof inner.commit>[0]) => {
            if (commit.runs.some(({ counters }) => counters !== undefined)) {
              asked.open();
              await answered.passed;
            }
            return inner.commit(commit);
          },
  });
  const flow = workflow({ name: "flow", budget: { usd: 1, onExceeded: "fail" } }, async (ctx) => {
    const slowly = ctx.step("slow", () => slow.passed);
    await ctx.step("first", () => 0);
    const dear = ctx.step("dear", () => 0, { spend: { usd: 2 } }).catch((error) => error.code);
    await slowly;
    ctx.set("seen", true);
    return [await ctx.step("second", () => "second"), await dear];
  });
  const pawl = await Pawl.open(store, { workflows: [flow], handleSignals: false });
  const run = await pawl.start(flow, undefined, { id: "r" });
  await asked.passed;
  slow.open();
  for (let round = 0; round < 20; round++) await nextRound();
  answered.open();
  expect(await run.result()).toEqual(["second", "budget_exceeded"]);
  expect((await run.journal()).map(({ type, key }) => `${type} ${key}`).slice(4)).toEqual([
    "step.started dear",
    "step.completed slow",
    "state.patched seen",
    "step.started second",
    "step.refused dear",
    ...["step.failed dear", "step.completed second"],
    "run.succeeded null",
  ]);
  expect((await run.status()).data).toEqual({ seen: true });
  await pawl.close();
});
