// A call that has no room only because of what others have reserved: it waits for them, and is not a person's business.
import { describe, expect, it } from "vitest";
import { RetryableError } from "../../src/base/errors.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Commit, RunCommit } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, type Gate, gate, MINUTE, nextRound, openWorld, STORES, type World } from "./harness.ts";

/** Children that reserve half of what there is; each spends what it is told when its gate opens. */
function family() {
  const gates = new Map<number, Gate<number>>();
  const begun: number[] = [];
  const child = workflow("child", (ctx, n: number) =>
    ctx.step(
      "pay",
      async ({ spent }) => {
        begun.push(n);
        const own = gate<number>();
        gates.set(n, own);
        spent({ usd: await own.passed });
        return n;
      },
      { spend: { usd: 0.5 }, timeout: "1h" },
    ),
  );
  const parent = workflow({ name: "parent", budget: { usd: 1 } }, async (ctx, count: number) => {
    const calls = Array.from({ length: count }, (_, n) => ctx.call(child, n, { key: `child-${n}` }));
    return (await Promise.allSettled(calls)).map(({ status }) => status);
  });
  const pay = (n: number, usd: number) => gates.get(n)?.open(usd);
  return { child, parent, begun, pay };
}

async function parkedOf(pawl: Pawl): Promise<string[]> {
  return (await pawl.list({ state: "parked" })).runs.map(({ id }) => id);
}

/** Acts once, right before a commit of this kind reaches the store. */
function rightBefore(world: World, isIt: (part: RunCommit) => boolean, act: () => Promise<unknown>): { count: number } {
  const inner = world.store.commit.bind(world.store);
  const done = { count: 0 };
  const commit = async (given: Commit) => {
    if (done.count === 0 && given.runs.some(isIt)) {
      done.count++;
      await act();
    }
    return inner(given);
  };
  Object.assign(world.store, { commit });
  return done;
}

const isPark = ({ entries }: RunCommit) => entries.some(({ type }) => type === "run.parked");

describe.each(STORES)("a budget that others have reserved, on %s", (store) => {
  it("X-13 RC2 the third of three children waits for the two that have reserved it all, and goes on when they have spent little", async () => {
    const world = await openWorld(store);
    const { child, parent, begun, pay } = family();
    const pawl = await world.open([parent, child]);
    const run = await pawl.start(parent, 3, { id: "r" });
    await world.settle();
    expect(begun).toHaveLength(2);
    expect(await parkedOf(pawl)).toEqual([]);
    for (const n of begun) pay(n, 0.01);
    await world.settle();
    expect(begun).toHaveLength(3);
    pay(begun[2] as number, 0.01);
    expect(await run.result()).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
    expect((await run.status()).budget).toMatchObject({ spent: { usd: 0.03 }, reserved: { usd: 0 } });
  });

  it("X-13 RC1 it is parked when what is spent leaves no room, though something is reserved still", async () => {
    const world = await openWorld(store);
    const { child, parent, begun, pay } = family();
    const pawl = await world.open([parent, child]);
    await pawl.start(parent, 3, { id: "r" });
    await world.settle();
    pay(begun[0] as number, 0.6);
    await world.settle();
    const [parked = ""] = await parkedOf(pawl);
    expect((await pawl.get(parked).status()).parked).toMatchObject({ reason: "budget_exceeded" });
    expect((await pawl.get("r").status()).budget).toMatchObject({ spent: { usd: 0.6 }, reserved: { usd: 0.5 } });
    pay(begun[1] as number, 0.1);
    await pawl.resolve(parked, { choice: "raise", value: { usd: 2 } });
    await world.settle();
    pay(begun[2] as number, 0.1);
    expect(await pawl.get("r").result()).toHaveLength(3);
  });

  it("X-13 RC2 one that has left memory tries again by itself, after pauses that grow", async () => {
    const world = await openWorld(store);
    const { child, parent, begun, pay } = family();
    const pawl = await world.open([parent, child]);
    const run = await pawl.start(parent, 3, { id: "r" });
    await world.advance(2 * MINUTE);
    expect(begun).toHaveLength(2);
    const [third] = (await pawl.list({ state: "retrying" })).runs;
    const tries = (await world.journal(third?.id ?? "")).filter((entry) => entry === "step.reserved pay");
    // After 1, 2, 4, 8 and 16 seconds, and then every 30.
    expect(tries).toHaveLength(7);
    for (const n of begun) pay(n, 0.01);
    await world.advance(MINUTE);
    expect(begun).toHaveLength(3);
    pay(begun[2] as number, 0.01);
    expect(await run.result()).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  });

  it("X-13 I6 a process that is killed while it waits loses nothing: the next one tries again", async () => {
    const world = await openWorld(store);
    const { child, parent, begun, pay } = family();
    const first = await world.open([parent, child]);
    await first.start(parent, 3, { id: "r" });
    await world.settle();
    expect(begun).toHaveLength(2);
    const second = await world.restart([parent, child]);
    await world.settle();
    // What the two have reserved is used by their reruns.
    expect(begun).toHaveLength(4);
    for (const n of begun.slice(2)) pay(n, 0.01);
    await world.advance(MINUTE);
    expect(begun).toHaveLength(5);
    pay(begun[4] as number, 0.01);
    expect(await second.get("r").result()).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  });

  it("X-13 P18 a budget that is raised between the refusal and the park leaves nobody parked", async () => {
    const world = await openWorld(store);
    const payer = (name: string) => workflow(name, (ctx) => ctx.step("pay", () => "paid", { spend: { usd: 0.8 } }));
    const [here, there] = [payer("here"), payer("there")];
    const parent = workflow({ name: "parent", budget: { usd: 1 } }, async (ctx) => {
      await ctx.call(here, undefined, { key: "first" });
      const late = ctx.waitFor("go").then(() => ctx.call(here, undefined, { key: "late" }));
      return Promise.all([ctx.call(there, undefined, { key: "parked" }), late]);
    });
    const pawl = await world.open([parent, here]);
    const other = await world.open([there], { poll: 20 });
    const run = await pawl.start(parent, undefined, { id: "r" });
    // The other process finds its run when it looks again.
    while ((await parkedOf(pawl)).length === 0) await nextRound();
    const [parked = ""] = await parkedOf(pawl);
    const raised = rightBefore(world, isPark, async () => {
      await other.resolve(parked, { choice: "raise", value: { usd: 3 } });
      while (!(await world.store.counters("of/r/")).some(({ key }) => key === "of/r/usd/limit")) await nextRound();
    });
    await pawl.signal("r", "go");
    await world.settle();
    expect(raised.count).toBe(1);
    expect(await parkedOf(pawl)).toEqual([]);
    expect(await run.result()).toEqual(["paid", "paid"]);
    expect(world.lines.filter(({ fields }) => fields["reason"] === "budget_exceeded")).toHaveLength(1);
  });
});

it("RC1 CO1 a call that was refused does not park a run whose body fails: what the run did is undone", async () => {
  const world = await openWorld("memory");
  const stock = gate<never>();
  const undone: unknown[] = [];
  const flow = workflow({ name: "order", retry: false, budget: { usd: 1 } }, async (ctx) => {
    await ctx.step("reserve", () => "seat 7", { undo: (seat) => undone.push(seat) });
    const pay = ctx.step("pay", () => "paid", { spend: { usd: 2 } });
    return Promise.all([pay, ctx.step("ship", () => stock.passed)]);
  });
  const pawl = await world.open([flow]);
  const run = await pawl.start(flow, undefined, { id: "r" });
  await world.settle();
  expect(await world.journal("r")).toContain("step.refused pay");
  stock.fail(new Error("out of stock"));
  await world.settle();
  expect(await world.journal("r")).not.toContain("run.parked");
  expect((await errorOf(run.result())).message).toBe("out of stock");
  expect(undone).toEqual(["seat 7"]);
});

it("SP2 BU2 a call that is refused in the commit that parks its run is recorded as refused: it does not begin when the run goes on", async () => {
  const world = await openWorld("memory");
  const [line, first] = [gate<never>(), gate<string>()];
  let payments = 0;
  const flow = workflow({ name: "order", retry: false, budget: { usd: 1, onExceeded: "fail" } }, async (ctx) => {
    const send = ctx.effect("send", { do: () => line.passed });
    void ctx.step("other", () => "done");
    await ctx.step("first", () => first.passed);
    return Promise.all([send, ctx.step("pay", () => ++payments, { spend: { usd: 2 } })]);
  });
  // While a commit is under way, the call is made, and a person has to be asked about the effect.
  const isOther = ({ entries }: RunCommit) =>
    entries.some(({ type, key }) => `${type} ${key}` === "step.completed other");
  rightBefore(world, isOther, async () => {
    first.open("done");
    for (let round = 0; round < 20; round++) await nextRound();
    line.fail(new RetryableError("the line went dead"));
    for (let round = 0; round < 20; round++) await nextRound();
  });
  const pawl = await world.open([flow]);
  const run = await pawl.start(flow, undefined, { id: "r" });
  await world.settle();
  const journal = await world.journal("r");
  expect(journal.slice(journal.indexOf("step.started pay"))).toEqual([
    "step.started pay",
    "effect.unknown send",
    "run.parked",
    "step.refused pay",
  ]);
  await pawl.resolve("r", { choice: "happened", value: "sent" });
  expect(await errorOf(run.result())).toMatchObject({ code: "budget_exceeded" });
  expect(payments).toBe(0);
});
