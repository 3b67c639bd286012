// Alerts that something stands in the way of: odd messages, what cannot be opened, damaged rows, and people who act on what is the engine's own.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { PawlError } from "../../src/base/errors.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import { LIMITS } from "../../src/core/limits.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, HOUR, MINUTE, openWorld, type World } from "../behaviour/harness.ts";
import { withoutColdStart } from "../cold-start.ts";
import { ENCRYPTION, keyOf } from "../sealed/keys.ts";
import { ACTION, check, fake, kinds, paying } from "./alert-world.ts";

const RUN = "pawl.alerts.1";
const TWICE = [["duplicate_effect", "charge order-7", 0, "firing"]];
const flow = paying(1);

/** The same action done twice, and the alert of it. */
async function payTwice(world: World, pawl: Pawl): Promise<string> {
  for (const id of ["first", "second"]) await pawl.run(flow, undefined, { id });
  await check(world, pawl);
  expect(await kinds(pawl)).toEqual(TWICE);
  return (await pawl.alerts.list())[0]?.id as string;
}

let messages = 0;
const leave = (world: World, data: string | Uint8Array) =>
  world.store.deliver({ to: RUN, id: `left-${messages++}`, kind: "signal", name: "reports", data });

const told = (world: World, words: string) => world.lines.filter(({ message }) => message.includes(words)).length;

const states = async (world: World) =>
  (await world.store.runs({ workflow: "pawl.alerts", limit: 9 })).map(({ id, state }) => [id, state]);

/** Reads through what a test makes of it. */
function reading<K extends "state" | "runs" | "run" | "journal" | "claim">(
  store: Store,
  name: K,
  read: Store[K],
): void {
  Object.assign(store, { [name]: read });
}

const CONDITION = { kind: "parked_run", subject: "x", level: 0, workflow: "w", runs: [], summary: "", detail: {} };
const ODD = [
  { kind: "seen", at: 1 },
  { kind: "seen", at: 1, owner: null, condition: { ...CONDITION, runs: "x" } },
  { kind: "seen", at: 1, owner: null, condition: { ...CONDITION, kind: "fire" } },
  { kind: "seen", at: 1e300, owner: null, condition: CONDITION },
  { kind: "seen", at: 1, owner: 7, condition: CONDITION },
  { kind: "over", at: 1 },
  { kind: "retries", at: 1, workflow: "w", tool: "t", owner: null },
  { kind: "retries", at: 1, workflow: "w", tool: "t", owner: null, count: -1, runs: [] },
  { kind: "effect", at: 1, action: "a", workflow: "w", owner: null },
  { kind: "effect", at: 1, action: 5, workflow: "w", owner: null, record: { run: "r", effect: "e" } },
  { kind: "duplicates", at: 1, workflow: "w", count: 1 },
  { kind: "acknowledge", at: 1, id: null, by: "x" },
  { kind: "resolve" },
  { kind: "toString", at: 1 },
  null,
  7,
  [],
];

describe("alerts that something stands in the way of", () => {
  it("S2-112 what is no report changes nothing, and those beside it count", async () => {
    const world = await openWorld("memory");
    const pawl = await world.open([flow]);
    await payTwice(world, pawl);
    const good = { kind: "seen", at: world.clock.now(), owner: null, condition: CONDITION };
    for (const data of [null, "x", ODD, [...ODD, good]]) await leave(world, JSON.stringify(data));
    expect(await kinds(pawl)).toEqual([["parked_run", "x", 0, "firing"], ...TWICE]);
    await world.settle();
    await pawl.idle();
    expect(await world.store.inbox(RUN)).toEqual([]);
    expect(await kinds(pawl)).toEqual([["parked_run", "x", 0, "firing"], ...TWICE]);
    expect((await pawl.metrics()).duplicateSafety.bad).toEqual(["first", "second"]);
    expect(world.lines.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("S2-112 Q14 a message that cannot be opened is used up and told of, and stops neither alerts nor metrics", async () => {
    const world = await openWorld("memory");
    const pawl = await world.open([flow], { encryption: { ...ENCRYPTION, plain: "refuse" } });
    await payTwice(world, pawl);
    await leave(world, "[]");
    expect(await kinds(pawl)).toEqual(TWICE);
    expect((await pawl.metrics()).duplicateSafety.bad).toEqual(["first", "second"]);
    expect(told(world, "Some of the alerts cannot be read")).toBe(1);
    await check(world, pawl);
    expect(await world.store.inbox(RUN)).toEqual([]);
    expect(told(world, "Messages for the alerts could not be read")).toBe(1);
    await pawl.run(flow, undefined, { id: "third" });
    await check(world, pawl);
    expect(await pawl.alerts.list()).toMatchObject([{ count: 2 }]);
    expect(told(world, "Messages for the alerts could not be read")).toBe(1);
  });

  it("S2-112 nobody starts, signals, cancels, resolves, retries or forks the run of the alerts", async () => {
    const world = await openWorld("memory");
    const pawl = await world.open([flow]);
    await payTwice(world, pawl);
    const refused = [
      pawl.start("pawl.alerts", {}),
      pawl.start(flow, undefined, { id: "pawl.alerts.2" }),
      pawl.fork("first", { at: 1, id: "pawl.alerts.2" }),
      pawl.signal(RUN, "reports", []),
      pawl.signal(RUN, "anything"),
      pawl.cancel(RUN),
      pawl.resolve(RUN, "retry"),
      pawl.retry(RUN),
      pawl.fork(RUN, { at: 1 }),
      pawl.rewrite(RUN, { cause: "edit", by: "ada", reason: "why not" }),
    ];
    for (const one of refused) {
      const error = await errorOf(one);
      expect(error).toMatchObject({ code: "invalid_argument" });
      expect(error.message).toContain("pawl.alerts");
    }
    const bulk = await pawl.operations.bulk({ action: "cancel", filter: { workflow: "pawl.alerts" }, by: "ada" });
    expect(bulk).toMatchObject({ matched: 1, done: 0, failed: [{ id: RUN }] });
    expect(await states(world)).toEqual([[RUN, "waiting"]]);
  });

  it("S2-112 a run of the alerts that is parked has a successor, which goes on with what it knew", async () => {
    withoutColdStart("an entry is damaged");
    const world = await openWorld("memory");
    const notifier = fake();
    const pawl = await world.open([flow], { notifiers: [notifier] });
    const id = await payTwice(world, pawl);
    const claim = world.store.claim.bind(world.store);
    const damaged = (run: string, journal: Awaited<ReturnType<Store["claim"]>>[number]["journal"]) =>
      run === RUN ? journal.map((entry) => ({ ...entry, data: "{}" })) : journal;
    reading(world.store, "claim", async (request) =>
      (await claim(request)).map((one) => ({ ...one, journal: damaged(one.run, one.journal) })),
    );
    await pawl.run(flow, undefined, { id: "third" });
    await check(world, pawl);
    expect(await states(world)).toEqual([[RUN, "parked"]]);
    await pawl.run(flow, undefined, { id: "fourth" });
    await check(world, pawl);
    expect(await states(world)).toEqual([
      ["pawl.alerts.2", "waiting"],
      [RUN, "cancelled"],
    ]);
    expect(await pawl.alerts.list()).toMatchObject([{ id, count: 2 }]);
    expect(notifier.got).toHaveLength(1);
    expect(told(world, `Run ${RUN} of the alerts is parked; run pawl.alerts.2 goes on`)).toBe(1);
  });

  it("S2-112 so has one whose row is damaged, and nobody is turned away meanwhile", async () => {
    const world = await openWorld("memory");
    const pawl = await world.open([flow]);
    const id = await payTwice(world, pawl);
    const runs = world.store.runs.bind(world.store);
    reading(world.store, "runs", async (query) => {
      const found = await runs(query);
      if (found[0]?.id !== RUN) return found;
      throw new PawlError("corrupted_journal", `The row of run ${RUN} is damaged.`, { fields: { run: RUN } });
    });
    expect(await kinds(pawl)).toEqual(TWICE);
    await pawl.run(flow, undefined, { id: "third" });
    await check(world, pawl);
    expect(await pawl.alerts.list()).toMatchObject([{ id, count: 2 }]);
    expect((await runs({ workflow: "pawl.alerts", limit: 9 })).map((row) => row.id)).toEqual(["pawl.alerts.2", RUN]);
  });

  it.each([
    ["cannot be read", "book", "{oops"],
    ["is of no version", "book", '{"book":{"alerts":[{"id":7}],"tallies":[],"duplicates":[]},"taken":0}'],
    ["is no list of actions", "effects:", "7"],
  ])("S2-112 state that %s is given up and told of, and everything goes on (%s)", async (_, key, data) => {
    const world = await openWorld("memory");
    const pawl = await world.open([flow]);
    await payTwice(world, pawl);
    const state = world.store.state.bind(world.store);
    const before = new Set((await state(RUN)).map((row) => row.data));
    reading(world.store, "state", async (run) =>
      (await state(run)).map((row) => (row.key.startsWith(key) && before.has(row.data) ? { ...row, data } : row)),
    );
    const isBook = key === "book";
    expect(await kinds(pawl)).toEqual(isBook ? [] : TWICE);
    expect((await pawl.metrics()).runs).toBe(2);
    expect(told(world, "Some of the alerts cannot be read")).toBe(1);
    for (const id of ["third", "fourth"]) await pawl.run(flow, undefined, { id });
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual(TWICE);
    expect(told(world, "What the alerts knew could not be read in part")).toBe(1);
    await pawl.run(flow, undefined, { id: "fifth" });
    await check(world, pawl);
    expect(told(world, "What the alerts knew could not be read in part")).toBe(1);
    expect(await states(world)).toEqual([[RUN, "waiting"]]);
  });

  it("S2-112 Q14 state that is sealed with a key which is not here is left to others, and given up once nobody has written it for an hour", async () => {
    withoutColdStart("a key is taken away from the runs");
    const leaseClock = manualClock();
    const world = await openWorld("memory", { leaseClock });
    const first = await world.open([flow], { encryption: ENCRYPTION });
    await payTwice(world, first);
    const second = await world.restart([flow], { encryption: { keys: [keyOf("k2"), keyOf("k1")] } });
    await second.run(flow, undefined, { id: "third" });
    await check(world, second);
    const third = await world.restart([flow], { encryption: ENCRYPTION });
    await third.run(flow, undefined, { id: "fourth" });
    await check(world, third);
    const unread = (await world.store.inbox(RUN)).length;
    expect(unread).toBeGreaterThan(0);
    await world.advance(MINUTE);
    expect(await world.store.inbox(RUN)).toHaveLength(unread);
    expect(told(world, "The alerts could not be looked after")).toBe(1);
    for (let ms = 0; ms <= LIMITS.alertPatienceMs; ms += 10_000) leaseClock.advance(10_000);
    await world.advance(MINUTE);
    expect(await world.store.inbox(RUN)).toEqual([]);
    expect(told(world, "What the alerts knew could not be read in part")).toBe(1);
  });

  it("S2-109 S2-112 a damaged approval or run hides what is read with it and nothing else, and is told of once", async () => {
    const world = await openWorld("memory");
    const ask = workflow("ask", (ctx) => ctx.approve("money", { action: ACTION, approvers: ["ada"] }).then(() => {}));
    const spend = workflow({ name: "agent", budget: { usd: 1 } }, async (ctx) => {
      await ctx.step("ask", () => 1, { spend: { usd: 0.9 } });
      await ctx.waitFor("more");
    });
    const pawl = await world.open([ask, spend]);
    await pawl.start(spend, undefined, { id: "spent" });
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual([["budget_near", "spent/usd", 0, "firing"]]);
    for (const id of ["torn", "whole"]) await pawl.start(ask, undefined, { id });
    await world.advance(5 * HOUR);
    const { journal, run } = world.store;
    const damaged = async () => Promise.reject(new PawlError("corrupted_journal", "It is torn."));
    reading(world.store, "journal", (id, range) => (id === "torn" ? damaged() : journal.call(world.store, id, range)));
    reading(world.store, "run", (id) => (id === "spent" ? damaged() : run.call(world.store, id)));
    for (let looks = 0; looks < 3; looks++) await check(world, pawl);
    expect((await pawl.alerts.list()).map(({ kind, runs }) => [kind, runs])).toEqual([
      ["stuck_approval", ["whole"]],
      ["budget_near", ["spent"]],
    ]);
    expect(told(world, "Alerts could not be looked for")).toBe(1);
    expect(await pawl.metrics()).toMatchObject({ runs: 3 });
    Object.assign(world.store, { journal, run });
  });
});
