// Metrics: exact values on histories that are known, in both formats, with the runs behind them.
import { describe, expect, it } from "vitest";
import { TerminalError } from "../../src/base/errors.ts";
import type { ApprovalRequested } from "../../src/core/approval-request.ts";
import type { Entry } from "../../src/core/journal.ts";
import type { Observer } from "../../src/core/observer.ts";
import { workflow } from "../../src/core/workflow.ts";
import { type DuplicateCount, type KnownIncident, qualityOf } from "../../src/observe/metrics.ts";
import { prometheusText } from "../../src/observe/prometheus.ts";
import { factsOf, type RunFacts } from "../../src/observe/run-facts.ts";
import { errorOf, HOUR, MINUTE, openWorld } from "../behaviour/harness.ts";

type Line = readonly [type: Entry["type"], key?: string | null, payload?: unknown];

/** What a run comes to whose journal has these entries behind its start. */
function facts(run: string, state: RunFacts["state"], lines: readonly Line[], origin: string | null = null): RunFacts {
  const started: Line = [
    "run.started",
    null,
    { workflow: "order", version: "1.0.0", input: null, seed: run, deadline: null },
  ];
  const entries = [started, ...lines].map(([type, key = null, payload = null], seq) => ({
    seq,
    at: seq,
    type,
    key,
    payload,
  }));
  return factsOf({ id: run, workflow: "order", state, origin, stopReason: null }, entries);
}

const NONE: DuplicateCount = { count: 0, runs: [] };
const quality = (all: readonly RunFacts[], duplicates = NONE, incidents: readonly KnownIncident[] = []) =>
  qualityOf(all, duplicates, incidents);

const RERUN: Line = ["step.started", "a", { attempt: 2, rerun: true }];
const failed = (retryAt: number | null): Line => ["step.failed", "a", { attempt: 1, error: new Error("x"), retryAt }];
const planned = (key: string, more: object = {}): Line => [
  "effect.planned",
  "charge",
  { attempt: 1, class: "write", key, guard: "none", undo: false, ...more },
];

describe("metrics", () => {
  it("S2-87 of 8 resumes 6 were clean: 0.75; what was never interrupted, or is still under way, does not count", () => {
    const clean = Array.from({ length: 5 }, (_, i) => facts(`clean-${i}`, "succeeded", [RERUN]));
    const retry = facts("retry", "failed", [], "origin");
    const repaired = facts("repaired", "succeeded", [
      ["run.parked", null, { reason: "poisoned" }],
      ["run.resolved", null, { choice: "retry" }],
    ]);
    const parked = facts("parked", "parked", [RERUN, ["run.parked", null, { reason: "unknown_outcome" }]]);
    const others = [facts("plain", "succeeded", []), facts("open", "running", [RERUN])];
    const { resumeSuccess } = quality([...clean, retry, repaired, parked, ...others]);
    expect(resumeSuccess).toMatchObject({ value: 0.75, good: 6, total: 8, bad: ["repaired", "parked"] });
    expect(resumeSuccess.runs).toHaveLength(8);
  });

  it("S2-88 of 10 duplicates one leaked: 0.9, with the two runs that did the same", () => {
    const twice = ["r1", "r2"].map((run) =>
      facts(run, "succeeded", [planned("order-7"), ["effect.executed", "charge", 1]]),
    );
    const own = ["r3", "r4"].map((run) =>
      facts(run, "succeeded", [planned(`${run}/charge`), ["effect.executed", "charge", 1]]),
    );
    const { duplicateSafety } = quality([...twice, ...own], { count: 9, runs: ["r1"] });
    expect(duplicateSafety).toMatchObject({ value: 0.9, good: 9, total: 10 });
    expect([...duplicateSafety.bad].sort()).toEqual(["r1", "r2"]);
  });

  it("S2-89 of 3 steps that were tried again 2 succeeded; a rerun after a crash is no retry", () => {
    const again: Line = ["step.started", "a", { attempt: 2 }];
    const good = facts("good", "succeeded", [["step.started", "a"], failed(9), again, ["step.completed", "a", 1]]);
    const both = facts("both", "failed", [
      ["step.started", "a"],
      failed(9),
      again,
      ["step.completed", "a", 1],
      ["step.started", "b"],
      ["step.failed", "b", { attempt: 1, error: new Error("x"), retryAt: 9 }],
      ["step.failed", "b", { attempt: 2, error: new Error("x"), retryAt: null }],
    ]);
    const { retrySuccess } = quality([good, both, facts("crash", "succeeded", [["step.started", "a"], RERUN])]);
    expect(retrySuccess).toEqual({ value: 2 / 3, good: 2, total: 3, runs: ["good", "both"], bad: ["both"] });
  });

  it("S2-90 of 2 actions that were to be undone one was", () => {
    const undone = facts("r", "failed", [
      ["step.started", "a/undo"],
      ["effect.compensated", "a/undo"],
      ["step.started", "b/undo"],
      ["step.failed", "b/undo", { attempt: 1, error: new Error("x"), retryAt: null }],
    ]);
    expect(quality([undone]).compensationSuccess).toMatchObject({ value: 0.5, good: 1, total: 2, bad: ["r"] });
  });

  it("S2-92 of 2 cancelled runs one did something after that", () => {
    const stop: Line = ["run.cancelling", null, { cause: "cancel", reason: "" }];
    const clean = facts("clean", "cancelled", [planned("k"), ["effect.executed", "charge", 1], stop]);
    const late = facts("late", "cancelled", [planned("k2"), stop, ["effect.executed", "charge", 1]]);
    expect(quality([clean, late]).cancellationCorrectness).toMatchObject({ value: 0.5, bad: ["late"] });
  });

  it("S2-93 of 4 replays 3 came to what was recorded", () => {
    const drift = facts("drift", "parked", [RERUN, ["run.parked", null, { reason: "replay_drift" }]]);
    const good = facts("good", "succeeded", [RERUN, RERUN]);
    expect(quality([drift, good]).replaySuccess).toMatchObject({ value: 0.75, good: 3, total: 4, bad: ["drift"] });
  });

  it("S2-94 of 4 incidents one had a case before", () => {
    const at = (day: number) => new Date(Date.UTC(2026, 0, day));
    const incidents = [
      { run: "a", openedAt: at(9), caseSince: at(2) },
      { run: "b", openedAt: at(9), caseSince: at(10) },
      { run: "c", openedAt: at(9), caseSince: null },
      { run: "d", openedAt: at(9), caseSince: null },
    ];
    expect(quality([], NONE, incidents).incidentRecurrence).toMatchObject({ value: 0.25, total: 4, bad: ["a"] });
  });

  it("S2-91 how long people took, of each workflow and each who could decide: median and 95th percentile", () => {
    const asked = { approvers: ["role:ops"], levels: [] } as Partial<ApprovalRequested>;
    const all = Array.from({ length: 20 }, (_, i) =>
      facts(`r${i}`, "succeeded", [
        ["approval.requested", "money", asked],
        ["approval.decided", "money", { at: 0, waitedMs: (i + 1) * MINUTE }],
      ]),
    );
    expect(quality(all).approvalWait).toMatchObject([
      { workflow: "order", approver: "role:ops", count: 20, medianMs: 10 * MINUTE, p95Ms: 19 * MINUTE },
    ]);
  });
});

/** The samples of a text in the format of Prometheus; throws where it is none. */
function parsed(text: string): Map<string, number> {
  expect(text.endsWith("\n")).toBe(true);
  const samples = new Map<string, number>();
  const types = new Map<string, string>();
  for (const line of text.trimEnd().split("\n")) {
    const type = /^# TYPE (\w+) (gauge|counter|histogram|summary)$/.exec(line);
    if (type !== null) types.set(type[1] as string, type[2] as string);
    if (line.startsWith("#")) continue;
    const found = /^([a-zA-Z_:][\w:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)+\})? (\S+)$/.exec(line);
    if (found === null) throw new Error(`no sample: ${line}`);
    const [, name = "", labels = "", value = ""] = found;
    expect(types.has(name.replace(/_(bucket|sum|count)$/, "")) || types.has(name), name).toBe(true);
    expect(samples.has(`${name}${labels}`), `${name}${labels} comes once`).toBe(false);
    samples.set(`${name}${labels}`, value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value));
  }
  return samples;
}

it("S2-95 S2-87 S2-91 both formats say the same of a store, with the runs behind each number, and odd names do no harm", async () => {
  const world = await openWorld("memory");
  const odd = 'say "hi"';
  let failures = 1;
  const flow = workflow({ name: odd, retry: { base: 100, jitter: false } }, async (ctx) => {
    await ctx.step("a", () => {
      if (failures-- > 0) throw Object.assign(new Error("503"), { status: 503 });
    });
    const action = { tool: "t", arguments: {} };
    await ctx.approve("money", { action, approvers: ["ada"] });
  });
  const pawl = await world.open([flow]);
  await pawl.start(flow, undefined, { id: "r", key: "k" });
  for (let i = 0; i < 3; i++) await pawl.start(flow, undefined, { key: "k" }).catch(() => {});
  await pawl.signal("r", "x", 1, { id: "once" });
  await pawl.signal("r", "x", 1, { id: "once" });
  await world.advance(2 * HOUR);
  const { approvals } = await pawl.approvals.list();
  await pawl.approvals.decide(approvals[0]?.id as string, { decision: "approved", by: "ada" });
  await world.settle();
  await pawl.alerts.check();
  await world.settle();
  const metrics = await pawl.metrics();
  expect(metrics).toMatchObject({ runs: 1, isComplete: true, retrySuccess: { value: 1, runs: ["r"] } });
  expect(metrics.duplicateSafety).toMatchObject({ value: 1, total: 4, runs: ["r"] });
  expect(metrics.store).toMatchObject({ runsByState: { succeeded: 1 }, queueAgeMs: 0 });
  expect(metrics.process.steps).toEqual({ completed: 1, retried: 1, failed: 0, unknown: 0 });
  expect(metrics.process.stepSeconds.count).toBe(2);
  expect(metrics.process.commitEntries.count).toBeGreaterThan(3);
  const samples = parsed(prometheusText(metrics));
  expect(samples.get("pawl_retry_success_ratio")).toBe(1);
  expect(samples.get("pawl_resume_success_ratio")).toBeNaN();
  expect(
    samples.get('pawl_approval_wait_seconds{workflow="say \\"hi\\"",approver="ada",quantile="0.5"}'),
  ).toBeGreaterThan(7000);
  expect(samples.get('pawl_steps_total{outcome="retried"}')).toBe(1);
  expect(samples.get('pawl_step_duration_seconds_bucket{le="+Inf"}')).toBe(2);
  // What has ended is not read again, and does not change.
  const reads: string[] = [];
  const { journal } = world.store;
  Object.assign(world.store, {
    journal: (...args: Parameters<typeof journal>) => {
      reads.push(args[0]);
      return journal.apply(world.store, args);
    },
  });
  expect((await pawl.metrics()).retrySuccess).toEqual(metrics.retrySuccess);
  expect(reads).not.toContain("r");
  expect((await pawl.metrics({ workflow: "other" })).runs).toBe(0);
  expect(await pawl.metrics({ maxRuns: 1, since: new Date(0) })).toMatchObject({ isComplete: true });
  expect(await errorOf(pawl.metrics({ since: new Date("x") }))).toMatchObject({ code: "invalid_argument" });
});

it("S2-88 S2-89 a retry, a fork and a dry run count what they have done themselves, not what they have taken over", async () => {
  const world = await openWorld("memory");
  let failures = 1;
  let isBroken = true;
  const flow = workflow({ name: "order", retry: { base: 100, jitter: false } }, async (ctx) => {
    await ctx.step("call", () => {
      if (failures-- > 0) throw Object.assign(new Error("503"), { status: 503 });
    });
    await ctx.effect("charge", { do: () => 1, key: "order-7" });
    await ctx.step("pack", () => {
      if (isBroken) throw new TerminalError("out of boxes");
    });
  });
  const pawl = await world.open([flow]);
  await pawl.start(flow, undefined, { id: "r" });
  await world.advance(MINUTE);
  isBroken = false;
  await (await pawl.retry("r")).result();
  await (await pawl.fork("r", { at: "pack" })).result();
  const dry = await pawl.fork("r", { at: "charge", effects: "replay" });
  await dry.result().catch(() => {});
  const { duplicateSafety, retrySuccess } = await pawl.metrics();
  expect(duplicateSafety.bad).toEqual([]);
  expect(retrySuccess).toMatchObject({ total: 1, runs: ["r"] });
  // What a fork does itself counts.
  const again = await pawl.fork("r", { at: "charge", effects: "live" });
  await again.result();
  expect((await pawl.metrics()).duplicateSafety.bad).toEqual(["r", again.id]);
});

it("S2-95 above the bound the newest runs are counted, and it says so; bad runs stand beside their number", async () => {
  const world = await openWorld("memory");
  const flow = workflow({ name: "order", retry: { max: 1, base: 100, jitter: false, on: "any" } }, async (ctx) => {
    await ctx.step("a", () => {
      throw new Error("no");
    });
  });
  const pawl = await world.open([flow], { alerts: false });
  for (const id of ["r1", "r2", "r3"]) await pawl.start(flow, undefined, { id });
  await world.advance(MINUTE);
  const metrics = await pawl.metrics({ maxRuns: 2 });
  expect(metrics).toMatchObject({ runs: 2, isComplete: false, retrySuccess: { value: 0, bad: ["r3", "r2"] } });
  const text = prometheusText(metrics);
  expect(text).toContain("# pawl_retry_success_ratio is about: r3 r2\n");
  expect(parsed(text).get("pawl_metrics_complete")).toBe(0);
});

it("S2-62 S2-63 the log is told of runs and steps by stable names, after their commit and not in replay", async () => {
  const world = await openWorld("memory");
  let failures = 1;
  const flow = workflow({ name: "order", retry: { base: 100, jitter: false } }, async (ctx) => {
    await ctx.step("a", () => {
      if (failures-- > 0) throw Object.assign(new Error("503"), { status: 503 });
    });
    await ctx.sleep("1h");
    await ctx.step("b", () => 1);
  });
  const lines: Readonly<Record<string, unknown>>[] = [];
  const note = (_: string, fields: Readonly<Record<string, unknown>> = {}) => void lines.push(fields);
  const logger = { debug: note, info: note, warn: note, error: note };
  const pawl = await world.open([flow], { logger });
  await pawl.start(flow, undefined, { id: "r" });
  await world.advance(MINUTE);
  await world.restart([flow], { logger });
  await world.advance(2 * HOUR);
  const events = lines.filter(({ run }) => run === "r");
  expect(events.map(({ event, step, attempt }) => [event, step, attempt])).toEqual([
    ["run.started", undefined, undefined],
    ["step.started", "a", 1],
    ["step.retried", "a", 1],
    ["step.started", "a", 2],
    ["step.completed", "a", undefined],
    ["step.started", "b", 1],
    ["step.completed", "b", undefined],
    ["run.ended", undefined, undefined],
  ]);
  for (const fields of events)
    expect(fields).toMatchObject({ run: "r", workflow: "order", traceId: expect.any(String) });
  expect(events.at(-1)).toMatchObject({ status: "succeeded", stopReason: "completed" });
});

it("X-24 an observer that throws around a step changes nothing about it: before, behind, and where the step itself throws", async () => {
  const world = await openWorld("memory");
  const flow = workflow({ name: "order", retry: false }, async (ctx) => {
    const first = await ctx.step("a", () => 1);
    const second = await ctx
      .step("b", () => Promise.reject(new Error("out of stock")))
      .catch((error: Error) => error.message);
    return [first, second];
  });
  let begun = 0;
  const before: Observer = {
    around: () => {
      throw new Error("broken observer");
    },
  };
  const behind: Observer = {
    around: (_, call) => {
      begun += 1;
      call();
      throw new Error("broken observer");
    },
  };
  const pawl = await world.open([flow], { observers: [before, behind] });
  expect(await pawl.run(flow)).toEqual([1, "out of stock"]);
  expect(begun).toBe(2);
  expect(world.lines.filter(({ message }) => message.includes("broken observer")).length).toBe(2);
});
