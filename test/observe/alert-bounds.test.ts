// What alerts cost and what they must not miss: many runs, many messages, processes that only start runs, and those that die before they have told.
import { expect, it } from "vitest";
import { type ManualClock, manualClock } from "../../src/base/clock.ts";
import { RetryableError } from "../../src/base/errors.ts";
import type { Entry, RunStarted } from "../../src/core/journal.ts";
import { LIMITS } from "../../src/core/limits.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { processIdentity } from "../../src/worker/process-identity.ts";
import { DAY, HOUR, MINUTE, openWorld, type World } from "../behaviour/harness.ts";
import { withoutColdStart } from "../cold-start.ts";
import { check, fake, kinds, paying, transient } from "./alert-world.ts";

const flow = paying(1);

/** Lets leases, polls, sweeps and looks go on for so many seconds. */
async function pass(world: World, leaseClock: ManualClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 5) {
    leaseClock.advance(5000);
    await world.settle();
  }
}

const alertRuns = async (store: Store) =>
  (await store.runs({ workflow: "pawl.alerts", limit: 9 })).map(({ id, state }) => [id, state]);

it("S2-108 the end of a storm counts with it, however few they are", async () => {
  const world = await openWorld("memory", { leaseClock: manualClock() });
  const options = { name: "order", retry: { max: 100, base: 100, factor: 1, jitter: false } } as const;
  const storm = workflow(options, async (ctx) => {
    let left = 50;
    await ctx.step("call", async () => {
      if (left-- > 0) throw transient();
    });
  });
  const pawl = await world.open([storm]);
  await pawl.start(storm);
  await world.advance(4850);
  await check(world, pawl);
  expect(await kinds(pawl)).toEqual([]);
  await world.advance(1000);
  await check(world, pawl);
  expect(await kinds(pawl)).toEqual([["retry_storm", "order/call", 0, "firing"]]);
});

it("S2-112 runs that nobody can take are found, however many others there are", async () => {
  const world = await openWorld("memory");
  const order = workflow("order", async () => {});
  const pawl = await world.open([order]);
  for (const id of ["lost-1", "lost-2"]) await pawl.start("gone", undefined, { id, version: "1.0.0" });
  for (let i = 0; i < LIMITS.alertLook; i++) await pawl.start(order, undefined, { delay: "7 days" });
  await world.advance(HOUR);
  await check(world, pawl);
  expect(await pawl.alerts.list()).toMatchObject([
    {
      kind: "stranded_run",
      subject: "gone@1.0.0",
      runs: ["lost-1", "lost-2"],
      summary: expect.stringMatching(/^2 runs/),
    },
  ]);
  for (const id of ["lost-1", "lost-2"]) await pawl.cancel(id);
  await check(world, pawl);
  expect(await kinds(pawl)).toEqual([]);
});

it("S2-110 the same action done twice is found after a death as well, once, whoever was to tell of it", async () => {
  const leaseClock = manualClock();
  const world = await openWorld("memory", { leaseClock });
  const notifier = fake();
  const first = await world.open([flow], { notifiers: [notifier] });
  await first.run(flow, undefined, { id: "first" });
  await check(world, first);
  const second = await world.open([flow], { notifiers: [notifier] });
  await check(world, second);
  expect(await kinds(second)).toEqual([]);
  await first.run(flow, undefined, { id: "second" });
  world.kill(first);
  await check(world, second);
  expect(await kinds(second), "nobody knows of the death yet").toEqual([]);
  await pass(world, leaseClock, 120);
  const [alert] = await second.alerts.list();
  expect(alert).toMatchObject({ kind: "duplicate_effect", runs: ["first", "second"], count: 1 });
  expect(notifier.got).toHaveLength(1);
  // Whoever comes later looks back as well, and finds nothing new.
  const third = await world.restart([flow], { notifiers: [notifier] });
  await check(world, third);
  expect(await third.alerts.list()).toMatchObject([{ id: alert?.id, count: 1 }]);
  await third.alerts.resolve(alert?.id as string, { by: "ada" });
  const fourth = await world.restart([flow], { notifiers: [notifier] });
  await check(world, fourth);
  expect(await kinds(fourth)).toEqual([]);
  expect(notifier.got).toHaveLength(1);
});

it("S2-110 S2-112 what the next run of the alerts begins with is bounded, and the old one is gone after an hour, whatever the retention", async () => {
  withoutColdStart("the run of the alerts has no body that could come to its end again");
  const leaseClock = manualClock();
  const world = await openWorld("memory", { leaseClock });
  const pawl = await world.open([flow], { retention: false });
  for (const id of ["first", "second"]) await pawl.run(flow, undefined, { id });
  await check(world, pawl);
  const now = world.clock.now();
  for (let i = 0; i < LIMITS.alertMessages; i++) {
    const record = { run: "r", effect: "e" };
    const reports = Array.from({ length: 10 }, (_, n) => {
      return { kind: "effect", at: now + i, action: `a ${i} ${n}`, workflow: "w", record, owner: null };
    });
    const data = JSON.stringify(reports);
    await world.store.deliver({ to: "pawl.alerts.1", id: `m${i}`, kind: "signal", name: "reports", data });
  }
  await check(world, pawl);
  expect(await alertRuns(world.store)).toEqual([
    ["pawl.alerts.2", "waiting"],
    ["pawl.alerts.1", "succeeded"],
  ]);
  const [begun] = await pawl.get("pawl.alerts.2").journal();
  expect(begun?.type).toBe("run.started");
  const { input } = (begun as Entry).payload as RunStarted;
  const { effects } = (input as { kept: { effects: Record<string, { at: number }[]> } }).kept;
  const times = Object.values(effects).flatMap((part) => part.map(({ at }) => at));
  expect(times).toHaveLength(LIMITS.alertActions);
  expect(Math.min(...times)).toBeGreaterThan(now + 200);
  expect(await pawl.alerts.list()).toHaveLength(1);
  await pass(world, leaseClock, 65);
  expect(await alertRuns(world.store)).toHaveLength(2);
  await world.advance(HOUR + MINUTE);
  await pass(world, leaseClock, 65);
  expect(await alertRuns(world.store)).toEqual([["pawl.alerts.2", "waiting"]]);
  expect(await pawl.list()).toMatchObject({ runs: [{ id: "second" }, { id: "first" }] });
});

it("S2-112 what was resolved is forgotten after a month", async () => {
  const world = await openWorld("memory");
  const pawl = await world.open([flow]);
  for (const id of ["first", "second"]) await pawl.run(flow, undefined, { id });
  await check(world, pawl);
  const [alert] = await pawl.alerts.list();
  await pawl.alerts.resolve(alert?.id as string, { by: "ada" });
  await world.advance(29 * DAY);
  await check(world, pawl);
  expect(await pawl.alerts.list({ status: "all" })).toHaveLength(1);
  await world.advance(2 * DAY);
  await check(world, pawl);
  expect(await pawl.alerts.list({ status: "all" })).toEqual([]);
});

it("S2-88 S2-112 a process that keeps no alerts tells what it has counted only if somebody is there to take it in", async () => {
  const leaseClock = manualClock();
  const world = await openWorld("memory", { leaseClock });
  const silent = await world.open([flow], { alerts: false });
  const client = await world.open();
  const twice = async () => {
    for (let i = 0; i < 3; i++) await client.start("pay", undefined, { key: "k" });
    await world.settle();
  };
  await twice();
  await pass(world, leaseClock, 130);
  expect(await alertRuns(world.store)).toEqual([]);
  const keeper = await world.open([flow]);
  await twice();
  await pass(world, leaseClock, 30);
  expect(await alertRuns(world.store)).toEqual([]);
  await pass(world, leaseClock, 40);
  expect(await alertRuns(world.store)).toEqual([["pawl.alerts.1", "waiting"]]);
  expect((await keeper.metrics()).duplicateSafety).toMatchObject({ value: 1, total: 5 });
  await silent.idle();
});

it("S2-112 a process that only sends notifications does not look through the store", async () => {
  const leaseClock = manualClock();
  const world = await openWorld("memory", { leaseClock });
  const sender = await world.open([], { notifiers: [fake()] });
  await sender.start("gone", undefined, { id: "r", version: "1.0.0" });
  await world.advance(HOUR);
  await pass(world, leaseClock, 130);
  expect(await alertRuns(world.store)).toEqual([]);
  await sender.alerts.check();
  expect(await kinds(sender), "somebody has asked").toEqual([["stranded_run", "gone@1.0.0", 0, "firing"]]);
});

it("S2-112 a run that nothing would wake is an alert, once, until somebody resolves it", async () => {
  const leaseClock = manualClock();
  const world = await openWorld("memory", { leaseClock });
  const notifier = fake();
  const good = workflow("good", async () => "done");
  const client = await world.open();
  await client.start("good", undefined, { id: "quiet", version: "1.0.0" });
  await client.start("good", undefined, { id: "r", version: "1.0.0" });
  await strand(world.store, "r");
  const pawl = await world.open([good], { notifiers: [notifier] });
  await check(world, pawl);
  expect(await kinds(pawl)).toEqual([]);
  await pass(world, leaseClock, 200);
  for (let looks = 0; looks < 2; looks++) await check(world, pawl);
  expect(await pawl.get("r").status()).toMatchObject({ status: "succeeded" });
  expect(await pawl.alerts.list()).toMatchObject([{ kind: "orphaned_run", subject: "r", count: 1 }]);
  expect(notifier.got).toMatchObject([{ event: "alert.firing", kind: "orphaned_run", runs: ["r"] }]);
  await pawl.alerts.resolve((await pawl.alerts.list())[0]?.id as string, { by: "ada" });
  await pass(world, leaseClock, 130);
  expect(await kinds(pawl)).toEqual([]);
});

it("S2-112 a run that is parked for a person is an alert, once, until somebody has decided; one that waits for its business is none", async () => {
  const world = await openWorld("memory");
  const notifier = fake();
  const order = workflow({ name: "order", retry: false, owner: "ops" }, async (ctx) => {
    await ctx.effect("pay", {
      do: () => {
        throw new RetryableError("the line went dead");
      },
    });
  });
  const waiting = workflow("waiting", async (ctx) => void (await ctx.waitFor("go")));
  const pawl = await world.open([order, waiting], { notifiers: [notifier] });
  await pawl.start(waiting, undefined, { id: "quiet" });
  await check(world, pawl);
  expect(await kinds(pawl)).toEqual([]);
  await pawl.start(order, undefined, { id: "r" });
  for (let looks = 0; looks < 3; looks++) await check(world, pawl);
  expect(await pawl.alerts.list()).toMatchObject([
    { kind: "parked_run", subject: "r", owner: "ops", count: 1, detail: { reason: "unknown_outcome" } },
  ]);
  const told = notifier.got.filter(({ event }) => event === "alert.firing");
  expect(told).toMatchObject([{ kind: "parked_run", runs: ["r"], to: ["ops"] }]);
  await pawl.resolve("r", { choice: "happened", value: 1 });
  await check(world, pawl);
  expect(await kinds(pawl)).toEqual([]);
});

/** Does to a run what only a bug could: it waits, and for nothing. */
async function strand(store: Store, run: string): Promise<void> {
  await store.register({ id: "vandal", name: "vandal", leaseMs: 15_000, process: processIdentity(), handles: [] });
  await store.take("vandal", run);
  const row = { state: "waiting", release: true, readyAt: null, wakeAt: null } as const;
  await store.commit({ worker: "vandal", runs: [{ run, head: 1, entries: [], row }] });
  await store.retire("vandal");
}
