// A call that has no room only because of what others have reserved: it waits for them, and is not a person's business.
import { describe, expect, it } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Commit, RunCommit } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { type Gate, gate, MINUTE, nextRound, openWorld, STORES, type World } from "./harness.ts";

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
function before(world: World, isIt: (part: RunCommit) => boolean, act: () => Promise<unknown>): { count: number } {
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
    const raised = before(world, isPark, async () => {
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
