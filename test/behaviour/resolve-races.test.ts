// Decisions that race with each other: each is about the park that it was made for.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import type { Run } from "../../src/client/run.ts";
import type { Store, WaitQuery } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, MINUTE, nextRound, openWorld, STORES } from "./harness.ts";

/** Has something else happen right after the store has answered the first such question for waits. */
function afterWaits(store: Store, isMeant: (query: WaitQuery) => boolean, act: () => Promise<void>): void {
  const waits: Store["waits"] = store.waits.bind(store);
  store.waits = async (query) => {
    const rows = await waits(query);
    if (!isMeant(query)) return rows;
    store.waits = waits;
    await act();
    return rows;
  };
}

/** Goes round until the run is parked because a limit has been reached. */
async function parkedAt(run: Pick<Run, "status">, limit: number): Promise<void> {
  while ((await run.status()).parked?.detail?.["limit"] !== limit) await nextRound();
}

const raise = (usd: number) => ({ choice: "raise", value: { usd } });

describe.each(STORES)("decisions that race, on %s", (kind) => {
  it("I2 I15 one that another has overtaken is not taken for one about the next park", async () => {
    const world = await openWorld(kind);
    const dear = workflow("dear", async (ctx) => {
      await ctx.step("a", () => "A", { spend: { usd: 2 } });
      return ctx.step("b", () => "B", { spend: { usd: 20 } });
    });
    const pawl = await world.open([dear]);
    const run = await pawl.start(dear, undefined, { budget: { usd: 1 } });
    await world.settle();
    const overtake = async () => {
      await pawl.resolve(run.id, raise(5));
      await parkedAt(run, 5);
    };
    afterWaits(world.store, ({ run: one }) => one === run.id, overtake);
    const late = await errorOf(pawl.resolve(run.id, raise(100)));
    expect(late).toMatchObject({ code: "idempotency_conflict", fields: { decided: "raise" } });
    await world.settle();
    expect((await run.status()).parked?.detail).toMatchObject({ limit: 5, asked: 20 });
  });

  it("I26 a raise for all who wait for a budget does not raise another that one of them waits for by then", async () => {
    const world = await openWorld(kind);
    const child = workflow({ name: "child", budget: { usd: 3 } }, async (ctx) => {
      await ctx.step("a", () => "A", { spend: { usd: 2 } });
      return ctx.step("b", () => "B", { spend: { usd: 5 } });
    });
    const parent = workflow({ name: "parent", budget: { usd: 1 } }, async (ctx) => {
      await Promise.all([ctx.call(child, undefined), ctx.call(child, undefined)]);
    });
    const pawl = await world.open([parent, child]);
    await pawl.start(parent);
    await world.settle();
    const [one, other] = (await pawl.list({ workflow: "child" })).runs.map(({ id }) => pawl.get(id)) as [Run, Run];
    const overtake = async () => {
      await pawl.resolve(other.id, raise(100));
      await parkedAt(other, 3);
    };
    afterWaits(world.store, ({ name }) => name === "budget_exceeded", overtake);
    await pawl.resolve(one.id, raise(100));
    await world.settle();
    for (const run of [one, other])
      expect((await run.status()).parked?.detail).toMatchObject({ budget: run.id, limit: 3 });
  });
});

it("VK2 a worker that takes up what it has the definition of decides about nothing else", async () => {
  const lease = manualClock();
  const world = await openWorld("memory", { leaseClock: lease });
  const make = (version: string) =>
    workflow({ name: "w", version }, async (ctx) => {
      await ctx.waitFor("go");
      await ctx.step("dear", () => "done", { spend: { usd: 2 } });
    });
  const old = make("1.0.0");
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 5000) {
      lease.advance(Math.min(left, 5000));
      await world.settle();
    }
  };
  await (await world.open([old])).start(old, undefined, { id: "r", budget: { usd: 1 } });
  await world.settle();
  await world.restart([make("2.0.0")], { versionGrace: MINUTE });
  await pass(3 * MINUTE);
  const pawl = await world.restart([]);
  const overtake = async () => {
    await pawl.signal("r", "go");
    await pawl.resolve("r", "old");
    await parkedAt(pawl.get("r"), 1);
  };
  afterWaits(world.store, ({ limit }) => limit !== undefined, overtake);
  await world.open([old]);
  await pass(10_000);
  const parks = (await world.journal("r")).filter((entry) => /^run\.(parked|resolved)/.test(entry));
  expect(parks).toEqual(["run.parked", "run.resolved", "run.parked"]);
  expect(await world.store.inbox("r")).toEqual([]);
});
