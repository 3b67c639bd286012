// Alerts: each fires once for its cause, and not in a quiet run; and what people say to them.
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../src/core/limits.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, HOUR, MINUTE, openWorld, STORES } from "../behaviour/harness.ts";
import { withoutColdStart } from "../cold-start.ts";
import { ACTION, check, fake, kinds, paying, sleeper, stormy, transient } from "./alert-world.ts";

describe.each(STORES)("a retry storm on %s", (store) => {
  it("S2-108 S2-112 50 retries in a minute are one alert, told once, that stays quiet once it is acknowledged and is over with its cause", async () => {
    const world = await openWorld(store);
    const notifier = fake();
    const flow = stormy("order", 50);
    const pawl = await world.open([flow], { notifiers: [notifier] });
    await pawl.start(flow, undefined, { id: "r" });
    await world.advance(30_000);
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual([["retry_storm", "order/call", 0, "firing"]]);
    const [alert] = await pawl.alerts.list();
    expect(alert).toMatchObject({ owner: "ops@shop.example", runs: ["r"], detail: { retries: 50, tool: "call" } });
    expect(notifier.got).toMatchObject([
      { event: "alert.firing", kind: "retry_storm", alert: alert?.id, to: ["ops@shop.example"] },
    ]);
    await pawl.alerts.acknowledge(alert?.id as string, { by: "ada" });
    await check(world, pawl);
    expect(await pawl.alerts.list()).toMatchObject([{ status: "acknowledged", acknowledgedBy: "ada" }]);
    await world.advance(2 * MINUTE);
    expect(await kinds(pawl, "all")).toEqual([["retry_storm", "order/call", 0, "resolved"]]);
    expect(notifier.got).toHaveLength(1);
    expect((await pawl.list()).runs.map(({ id }) => id)).toEqual(["r"]);
    await pawl.idle();
  });
});

describe("alerts", () => {
  it("S2-108 S2-109 S2-110 S2-111 a quiet run fires nothing, and leaves no run of alerts", async () => {
    const world = await openWorld("memory");
    const flow = stormy("order", 3);
    const ask = workflow("ask", (ctx) => ctx.approve("money", { action: ACTION, approvers: ["ada"] }).then(() => {}));
    const pay = paying(1);
    const pawl = await world.open([flow, ask, pay], { alerts: { duplicateEffect: false } });
    for (const one of [flow, ask, pay]) await pawl.start(one as typeof flow);
    await world.advance(HOUR);
    await check(world, pawl);
    expect(await pawl.alerts.list({ status: "all" })).toEqual([]);
    expect((await pawl.list({ workflow: "pawl.alerts" })).runs).toEqual([]);
  });

  it("S2-108 retries of two steps are a storm of their workflow, if neither is one alone", async () => {
    const world = await openWorld("memory");
    const options = { name: "order", retry: { max: 100, base: 100, factor: 1, jitter: false } } as const;
    const flow = workflow(options, async (ctx) => {
      for (const step of ["a", "b"]) {
        let left = 30;
        await ctx.step(step, () => {
          if (left-- > 0) throw transient();
        });
      }
    });
    const pawl = await world.open([flow]);
    await pawl.start(flow);
    await world.advance(30_000);
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual([["retry_storm", "order", 0, "firing"]]);
    // Nobody is notified here: the log says it.
    const lines = world.lines.filter(({ level }) => level === "warn").map(({ fields }) => fields["event"]);
    expect(lines).toEqual(["alert.firing"]);
  });

  it("S2-109 S2-112 an approval fires at the threshold, and again at the next level; looking again does not, and a decision ends it", async () => {
    const world = await openWorld("memory");
    const notifier = fake();
    const ask = workflow("ask", async (ctx) => {
      const escalate = [{ after: "10h", action: "escalate", to: ["bob"] }] as const;
      await ctx.approve("money", { action: ACTION, approvers: ["ada"], timeout: "24h", escalate });
    });
    const pawl = await world.open([ask], { notifiers: [notifier], alerts: { stuckApproval: { after: "4h" } } });
    await pawl.start(ask, undefined, { id: "r" });
    await world.advance(3 * HOUR);
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual([]);
    await world.advance(HOUR);
    for (let looks = 0; looks < 3; looks++) await check(world, pawl);
    const { approvals } = await pawl.approvals.list();
    const id = approvals[0]?.id as string;
    expect(await kinds(pawl)).toEqual([["stuck_approval", id, 0, "firing"]]);
    await world.advance(6 * HOUR);
    for (let looks = 0; looks < 3; looks++) await check(world, pawl);
    expect(await kinds(pawl)).toEqual([
      ["stuck_approval", id, 1, "firing"],
      ["stuck_approval", id, 0, "firing"],
    ]);
    expect(notifier.got.filter(({ event }) => event === "alert.firing")).toHaveLength(2);
    await pawl.approvals.decide(id, { decision: "approved", by: "bob" });
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual([]);
  });

  it("S2-110 S2-88 the same key done twice is one alert that names both records, until somebody has seen to it", async () => {
    const world = await openWorld("memory");
    const flow = paying(1);
    const pawl = await world.open([flow]);
    for (const id of ["first", "second"]) await pawl.run(flow, undefined, { id });
    await check(world, pawl);
    const [alert] = await pawl.alerts.list();
    expect(alert).toMatchObject({
      kind: "duplicate_effect",
      runs: ["first", "second"],
      detail: {
        records: [
          { run: "first", effect: "charge" },
          { run: "second", effect: "charge" },
        ],
      },
    });
    expect(alert?.summary).toContain('"charge" of run first and "charge" of run second');
    await check(world, pawl);
    expect(await pawl.alerts.list()).toHaveLength(1);
    await pawl.alerts.resolve(alert?.id as string, { by: "ada" });
    await check(world, pawl);
    expect(await pawl.alerts.list({ status: "all" })).toMatchObject([{ status: "resolved", resolvedBy: "ada" }]);
    expect(await errorOf(pawl.alerts.acknowledge(alert?.id as string, { by: "bob" }))).toMatchObject({
      code: "alert_resolved",
    });
    expect(await errorOf(pawl.alerts.acknowledge("alX", { by: "bob" }))).toMatchObject({ code: "alert_not_found" });
  });

  it("S2-110 so is a key that is used twice in one run; a key that the outside knows again is none", async () => {
    const world = await openWorld("memory");
    const twice = paying(2);
    const known = workflow("known", async (ctx) => {
      await ctx.effect("mail", { do: () => 1, key: "order-7", idempotent: true });
    });
    const pawl = await world.open([twice, known]);
    await pawl.run(twice, undefined, { id: "t" });
    for (let i = 0; i < 2; i++) await pawl.run(known);
    await check(world, pawl);
    expect((await pawl.alerts.list()).map(({ detail }) => detail["records"])).toEqual([
      [
        { run: "t", effect: "charge" },
        { run: "t", effect: "charge#2" },
      ],
    ]);
    const { duplicateSafety } = await pawl.metrics();
    expect(duplicateSafety).toMatchObject({ value: 0, total: 1, bad: ["t"] });
  });

  it("S2-111 a run whose code does not follow its journal is an alert, and so is a damaged journal; both end with the park", async () => {
    withoutColdStart("the code is changed under the run, and an entry is damaged");
    const world = await openWorld("memory");
    const claim = world.store.claim.bind(world.store);
    const damaged: Store["claim"] = async (request) =>
      (await claim(request)).map((one) => {
        const journal = one.journal.map((entry, i) => (i === 1 ? { ...entry, key: "changed" } : entry));
        return one.run === "damaged" ? { ...one, journal } : one;
      });
    Object.assign(world.store, { claim: damaged });
    const before = sleeper("order", "a", "1h");
    const after = sleeper("order", "b", "1h");
    const other = sleeper("other", "a", "1h");
    const pawl = await world.open([before, other]);
    await pawl.start(before, undefined, { id: "drifts" });
    await pawl.start(other, undefined, { id: "damaged" });
    await world.settle();
    const next = await world.restart([after, other]);
    await world.advance(HOUR);
    await check(world, next);
    const reasons = (await next.alerts.list()).map(({ kind, subject, detail }) => [kind, subject, detail["reason"]]);
    expect(reasons.sort()).toEqual([
      ["replay_failure", "damaged", "corrupted_journal"],
      ["replay_failure", "drifts", "replay_drift"],
    ]);
    for (const run of ["drifts", "damaged"]) await next.cancel(run);
    await check(world, next);
    expect(await next.alerts.list()).toEqual([]);
    expect((await next.metrics()).replaySuccess).toMatchObject({ value: 0, total: 2 });
  });

  it("S2-90 C-15 what could not be undone is an alert, of which the owner is not told twice", async () => {
    const world = await openWorld("memory");
    const notifier = fake();
    const undo = () => {
      throw new Error("bank is closed");
    };
    const flow = workflow({ name: "order", owner: "ops", retry: false }, async (ctx) => {
      await ctx.step("charge", () => 1, { undo });
      throw new Error("out of stock");
    });
    const pawl = await world.open([flow], { notifiers: [notifier] });
    await pawl.start(flow, undefined, { id: "r" });
    await world.advance(HOUR);
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual([["compensation_incomplete", "r", 0, "firing"]]);
    expect(notifier.got.map(({ event }) => event)).toEqual(["compensation_incomplete"]);
    expect((await pawl.metrics()).compensationSuccess).toMatchObject({ value: 0, good: 0, total: 1, bad: ["r"] });
  });

  it("S2-112 a budget that is nearly used, and one that is, are alerts, each over with its cause", async () => {
    const world = await openWorld("memory");
    const flow = workflow({ name: "agent", budget: { usd: 1 } }, async (ctx) => {
      for (const usd of [0.5, 0.35]) await ctx.step("ask", () => 1, { spend: { usd } });
      await ctx.waitFor("more");
      await ctx.step("ask", () => 1, { spend: { usd: 0.5 } });
    });
    const pawl = await world.open([flow]);
    await pawl.start(flow, undefined, { id: "r" });
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual([["budget_near", "r/usd", 0, "firing"]]);
    await pawl.signal("r", "more");
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual([
      ["budget_exceeded", "r", 0, "firing"],
      ["budget_near", "r/usd", 0, "firing"],
    ]);
    await pawl.resolve("r", { choice: "raise", value: { usd: 3 } });
    await check(world, pawl);
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual([]);
  });

  it("S2-112 runs that no live worker can take are an alert after a while", async () => {
    const world = await openWorld("memory");
    const pawl = await world.open([stormy("order", 0)]);
    await pawl.start("gone", undefined, { id: "r", version: "1.0.0" });
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual([]);
    await world.advance(HOUR);
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual([["stranded_run", "gone@1.0.0", 0, "firing"]]);
    await pawl.cancel("r");
    await check(world, pawl);
    expect(await kinds(pawl)).toEqual([]);
  });

  it("S2-112 what comes again right after it was over is no second message", async () => {
    const world = await openWorld("memory");
    const notifier = fake();
    const flow = stormy("order", 50);
    const pawl = await world.open([flow], { notifiers: [notifier] });
    for (let i = 0; i < 2; i++) {
      await pawl.start(flow);
      await world.advance(30_000);
      await check(world, pawl);
      await world.advance(2 * MINUTE);
    }
    expect(await pawl.alerts.list({ status: "all" })).toMatchObject([{ isRepeat: true }, { isRepeat: false }]);
    expect(notifier.got).toHaveLength(1);
  });

  it("S2-112 each kind can be turned off, and all of them", async () => {
    const world = await openWorld("memory");
    const flow = stormy("order", 50);
    const pawl = await world.open([flow], { alerts: { retryStorm: false } });
    const silent = await world.open([flow], { alerts: false });
    await pawl.start(flow);
    await silent.start(flow);
    await world.advance(MINUTE);
    for (const one of [pawl, silent]) await check(world, one);
    expect(await pawl.alerts.list({ status: "all" })).toEqual([]);
    expect(await errorOf(world.open([], { alerts: { budget: { near: 2 } } }))).toMatchObject({
      code: "invalid_argument",
      fields: { field: "alerts.budget.near" },
    });
    expect(await errorOf(pawl.alerts.list({ status: "open" as never }))).toMatchObject({ code: "invalid_argument" });
  });

  it("S2-112 the run of the alerts hands on what it knows after many messages, and nothing is told again", async () => {
    withoutColdStart("the run of the alerts has no body that could come to its end again");
    const world = await openWorld("memory");
    const notifier = fake();
    const flow = paying(1);
    const pawl = await world.open([flow], { notifiers: [notifier] });
    for (const id of ["first", "second"]) await pawl.run(flow, undefined, { id });
    await check(world, pawl);
    const [alert] = await pawl.alerts.list();
    const run = (await world.store.runs({ workflow: "pawl.alerts", limit: 9 }))[0]?.id as string;
    for (let i = 0; i < LIMITS.alertMessages; i++)
      await world.store.deliver({ to: run, id: `m${i}`, kind: "signal", name: "noise", data: "1" });
    await pawl.run(flow, undefined, { id: "third" });
    await check(world, pawl);
    await pawl.run(flow, undefined, { id: "fourth" });
    await check(world, pawl);
    const runs = await world.store.runs({ workflow: "pawl.alerts", limit: 9 });
    expect(runs.map(({ id, state }) => [id, state])).toEqual([
      ["pawl.alerts.2", "waiting"],
      ["pawl.alerts.1", "succeeded"],
    ]);
    expect(await pawl.alerts.list()).toMatchObject([{ id: alert?.id, count: 3 }]);
    expect(notifier.got).toHaveLength(1);
  });
});

it("D-9 a storm, a stuck approval, an effect done twice and a run that cannot be replayed are four alerts, each told once, also to a worker that comes later", async () => {
  withoutColdStart("the code is changed under a run");
  const world = await openWorld("memory");
  const notifier = fake();
  const storm = stormy("storm", 50);
  const ask = workflow("ask", (ctx) => ctx.approve("money", { action: ACTION, approvers: ["ada"] }).then(() => {}));
  const pay = paying(1);
  const before = sleeper("order", "a", "5h");
  const after = sleeper("order", "b", "5h");
  const options = { notifiers: [notifier] };
  const pawl = await world.open([storm, ask, pay, before], options);
  await pawl.start(storm, undefined, { id: "storm" });
  await pawl.start(ask, undefined, { id: "ask" });
  await pawl.start(before, undefined, { id: "drift" });
  for (const id of ["pay-1", "pay-2"]) await pawl.run(pay, undefined, { id });
  await world.advance(MINUTE / 2);
  await check(world, pawl);
  const next = await world.restart([storm, ask, pay, after], options);
  await world.advance(6 * HOUR);
  for (let looks = 0; looks < 2; looks++) await check(world, next);
  const all = await next.alerts.list({ status: "all" });
  expect(all.map(({ kind, runs }) => [kind, runs]).sort()).toEqual([
    ["duplicate_effect", ["pay-1", "pay-2"]],
    ["replay_failure", ["drift"]],
    ["retry_storm", ["storm"]],
    ["stuck_approval", ["ask"]],
  ]);
  const told = notifier.got.flatMap((one) => (one.event === "alert.firing" ? [one.kind] : []));
  expect(told.sort()).toEqual(["duplicate_effect", "replay_failure", "retry_storm", "stuck_approval"]);
});
