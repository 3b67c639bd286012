// The watch
// What one process sees and tells the run of the alerts: what its own runs do, as it becomes durable, and every so often what the store says.
//
//   AW1. Nothing here makes a run wait: reports are gathered, and sent by themselves.
//   AW2. It decides nothing about alerts: the same report from every worker fires once (AK2).
//   AW3. A quiet store has no run of alerts: what is not worth a report is not reported.
//   AW4. A process that keeps no alerts counts for itself, and tells what it has counted once in a while, and only if somebody is there to take it
//        in: messages that nobody reads would only grow.
//   AW5. One damaged row hides what is read with it, and nothing else: that is told once.
import type { Clock } from "../base/clock.ts";
import { hasCode, messageOf } from "../base/errors.ts";
import {
  ALERTS_WORKFLOW,
  type AlertKind,
  type Condition,
  type DuplicatesReport,
  isOn,
  type Report,
  type RetriesReport,
} from "../core/alert.ts";
import { isActive, type KnownEffect } from "../core/alert-book.ts";
import { COUNTERS, fromCount } from "../core/budget.ts";
import { countersOf } from "../core/counters.ts";
import type { StoredEntry } from "../core/journal.ts";
import { LIMITS } from "../core/limits.ts";
import type { ObservedRun } from "../core/observer.ts";
import { isOwnWorkflow } from "../core/own-workflows.ts";
import type { CounterChange, RunCommit } from "../core/store.ts";
import { isTerminal } from "../core/transition.ts";
import type { RunFacts } from "../observe/run-facts.ts";
import type { KeptAlerts } from "../worker/alert-records.ts";
import { Loop } from "../worker/loop.ts";
import { Conditions, LOOKED_FOR, parkCondition } from "./alert-conditions.ts";
import { type AlertReader, type AlertsRunPorts, sendReports } from "./alerts-run.ts";

export interface AlertWatchPorts extends AlertsRunPorts {
  readonly reader: AlertReader;
  /** Whether this process takes the run of the alerts. */
  readonly isKeeper: boolean;
  /** What the newest runs have come to that had not ended by then. */
  factsSince(time: number): Promise<readonly RunFacts[]>;
  /** Of a workflow that this process has. */
  ownerOf(workflow: string, kind: AlertKind): string | null;
}

/** Retries are counted in spans of this part of their window. */
const SPANS = 12;
/** Below this part of what makes a storm, a process keeps its retries to itself (AW3). */
const QUIET_PART = 10;

export class AlertWatch {
  readonly #ports: AlertWatchPorts;
  readonly #conditions: Conditions;
  readonly #look: Loop;
  #reports: Report[] = [];
  readonly #retries = new Map<string, RetriesReport>();
  /** Workflows that were loud enough, and when last: the rest of a storm belongs to it, however few they are. */
  readonly #loud = new Map<string, number>();
  readonly #duplicates = new Map<string, DuplicatesReport>();
  /** What budgets may spend, by their run and unit. */
  readonly #budgets = new Map<string, Map<string, number>>();
  #forgetTimer: (() => void) | null = null;
  /** The trouble that was told of last. */
  #told: string | null = null;
  #sending: Promise<void> = Promise.resolve();
  /** Some process may have died before it had told what its runs have done. */
  #mayLack: boolean;

  constructor(ports: AlertWatchPorts) {
    this.#ports = ports;
    this.#mayLack = ports.isKeeper;
    this.#conditions = new Conditions(ports.store, ports.codec, ports.rules);
    this.#look = new Loop(ports.store.leaseClock, ports.rules.everyMs, () => this.#guarded(() => this.look()));
  }

  get isKeeper(): boolean {
    return this.#ports.isKeeper;
  }

  start(): void {
    this.#look.start();
  }

  async stop(): Promise<void> {
    await this.#look.stop();
    await this.flush();
  }

  // What this process sees

  /** Entries of a run are durable. */
  committed(run: ObservedRun, { entries, waits, counters, row }: RunCommit): void {
    if (isOwnWorkflow(run.workflow)) return;
    if (waits !== undefined || row !== undefined) this.#sawChange(run, waits, row?.stopReason);
    if (counters !== undefined) this.#sawSpending(counters);
    for (const entry of entries) if (entry.type === "step.failed" && isRetry(entry, waits)) this.#retried(run, entry);
  }

  executed(run: ObservedRun, effect: string, action: string): void {
    if (this.#ports.rules.duplicateEffect) this.#did(run.workflow, { action, at: this.#now, run: run.id, effect });
  }

  #did(workflow: string, { action, at, run, effect }: KnownEffect): void {
    const owner = this.#ports.ownerOf(workflow, "duplicate_effect");
    this.#report({ kind: "effect", at, action, workflow, record: { run, effect }, owner });
  }

  /** Whoever comes first after a death may be the one to find it, so that a process looks back once when it begins as well. */
  died(): void {
    this.#mayLack = true;
  }

  orphaned(runs: readonly string[]): void {
    for (const run of runs)
      this.#saw("orphaned_run", null, {
        subject: run,
        runs: [run],
        summary: `Nothing would have woken run ${run}; it was put back to work`,
        detail: {},
      });
  }

  /** A start or a signal that had come before. */
  duplicate(run: string, workflow: string): void {
    const known = this.#duplicates.get(workflow);
    this.#duplicates.set(workflow, {
      kind: "duplicates",
      at: this.#now,
      workflow,
      count: (known?.count ?? 0) + 1,
      runs: [...new Set([...(known?.runs ?? []), run])].slice(-20),
    });
    this.#sendSoon();
  }

  #sawChange(run: ObservedRun, waits: RunCommit["waits"], stopReason: string | undefined): void {
    const { id, workflow } = run;
    for (const change of waits ?? []) {
      if (!("open" in change) || change.open.kind !== "decision") continue;
      const condition = parkCondition({ run: id, workflow, name: change.open.name, detail: change.open.detail });
      if (condition !== null) this.#saw(condition.kind, workflow, condition);
    }
    if (stopReason !== "compensation_incomplete") return;
    const summary = `Run ${id} of ${workflow} has ended, and not all that it did could be undone`;
    this.#saw("compensation_incomplete", workflow, { subject: id, runs: [id], summary, detail: {} });
  }

  #sawSpending(counters: readonly CounterChange[]): void {
    if (this.#ports.rules.budget === null) return;
    for (const { of, key, max } of counters) {
      if (of === undefined || max === null) continue;
      const units = this.#budgets.get(of) ?? new Map<string, number>();
      this.#budgets.set(of, units.set(key, max));
      this.#sendSoon();
    }
  }

  #retried({ id, workflow }: ObservedRun, { at, key }: StoredEntry): void {
    const { retryStorm } = this.#ports.rules;
    if (retryStorm === null || key === null) return;
    const spanMs = retryStorm.perMs / SPANS;
    const tool = key.replace(/#\d+$/, "");
    const span = Math.floor(at / spanMs) * spanMs;
    const slot = JSON.stringify([workflow, tool, span]);
    const known = this.#retries.get(slot);
    this.#retries.set(slot, {
      kind: "retries",
      // As late as it may have been: none is forgotten too early.
      at: Math.max(known?.at ?? 0, at),
      workflow,
      tool,
      count: (known?.count ?? 0) + 1,
      runs: [...new Set([...(known?.runs ?? []), id])].slice(-20),
      owner: this.#ports.ownerOf(workflow, "retry_storm"),
    });
    this.#sendSoon();
  }

  #saw(kind: AlertKind, workflow: string | null, what: Omit<Condition, "kind" | "level" | "workflow">): void {
    if (!isOn(this.#ports.rules, kind)) return;
    const condition: Condition = { level: 0, ...what, kind, workflow };
    const owner = workflow === null ? null : this.#ports.ownerOf(workflow, kind);
    this.#report({ kind: "seen", at: this.#now, condition, owner });
  }

  #report(report: Report): void {
    this.#reports.push(report);
    this.#sendSoon();
  }

  get #now(): number {
    return this.#ports.store.clock.now();
  }

  // Telling

  #sendSoon(): void {
    const { store, isKeeper, rules } = this.#ports;
    const clock: Clock = store.leaseClock;
    const inMs = isKeeper ? LIMITS.reportEveryMs : rules.everyMs;
    this.#forgetTimer ??= clock.after(inMs, () => void this.#guarded(() => this.flush()));
  }

  /** Sends what was gathered; resolves when it is durable. One at a time. */
  flush(): Promise<void> {
    this.#forgetTimer?.();
    this.#forgetTimer = null;
    const sending = this.#sending.then(() => this.#flush());
    this.#sending = sending.catch(() => {});
    return sending;
  }

  async #flush(): Promise<void> {
    const budgets = await this.#nearBudgets();
    const duplicates = await this.#takeDuplicates();
    const reports = [...this.#reports.splice(0), ...this.#takeRetries(), ...duplicates, ...budgets];
    if (reports.length === 0) return;
    try {
      await sendReports(this.#ports, reports);
    } catch (error) {
      this.#reports = [...reports, ...this.#reports].slice(-LIMITS.reportsPerMessage);
      throw error;
    }
  }

  /** None while there is nobody to take them in: they stay counted (AW4). */
  async #takeDuplicates(): Promise<DuplicatesReport[]> {
    if (this.#duplicates.size === 0) return [];
    if (!this.#ports.isKeeper && !(await this.#hasKeeper())) return [];
    const taken = [...this.#duplicates.values()];
    this.#duplicates.clear();
    return taken;
  }

  async #hasKeeper(): Promise<boolean> {
    const live = (await this.#ports.store.workers()).filter(({ leaseLeftMs }) => leaseLeftMs > 0);
    return live.some(({ handles }) => handles.some(({ workflow }) => workflow === ALERTS_WORKFLOW));
  }

  /** Those of workflows that are loud enough here. What is too old for a storm is forgotten. */
  #takeRetries(): RetriesReport[] {
    const { retryStorm } = this.#ports.rules;
    if (retryStorm === null) return [];
    const counts = new Map<string, number>();
    for (const [slot, { at, workflow, count }] of this.#retries) {
      if (this.#now - at >= retryStorm.perMs) this.#retries.delete(slot);
      else counts.set(workflow, (counts.get(workflow) ?? 0) + count);
    }
    for (const [workflow, at] of this.#loud) if (this.#now - at >= retryStorm.perMs) this.#loud.delete(workflow);
    const least = Math.ceil(retryStorm.retries / QUIET_PART);
    for (const [workflow, count] of counts) if (count >= least) this.#loud.set(workflow, this.#now);
    const loud = [...this.#retries].filter(([, { workflow }]) => this.#loud.has(workflow));
    for (const [slot] of loud) this.#retries.delete(slot);
    return loud.map(([, report]) => report);
  }

  async #nearBudgets(): Promise<Report[]> {
    const found: Report[] = [];
    for (const [run, units] of this.#budgets) {
      this.#budgets.delete(run);
      found.push(...(await this.#unlessDamaged(() => this.#nearBudgetsOf(run, units), [])));
    }
    return found;
  }

  async #nearBudgetsOf(run: string, units: ReadonlyMap<string, number>): Promise<Report[]> {
    const { store, rules } = this.#ports;
    const prefix = countersOf(run);
    const counts = new Map((await store.counters(prefix)).map(({ key, value }) => [key.slice(prefix.length), value]));
    const row = await store.run(run);
    if (row === null || isTerminal(row.state)) return [];
    return [...units].flatMap(([unit, max]) => {
      const limit = Math.max(max, counts.get(COUNTERS.limit(unit)) ?? 0);
      const used = counts.get(COUNTERS.used(unit)) ?? 0;
      if (limit <= 0 || used / limit < (rules.budget?.near ?? 1)) return [];
      return [this.#nearBudget(run, row.workflow, unit, fromCount(unit, used), fromCount(unit, limit))];
    });
  }

  #nearBudget(run: string, workflow: string, unit: string, used: number, limit: number): Report {
    const condition: Condition = {
      kind: "budget_near",
      subject: `${run}/${unit}`,
      level: 0,
      workflow,
      runs: [run],
      summary: `Run ${run} of ${workflow} has used ${used} of ${limit} ${unit}`,
      detail: { unit, used, limit },
    };
    return { kind: "seen", at: this.#now, condition, owner: this.#ports.ownerOf(workflow, "budget_near") };
  }

  // Looking

  /** Compares what the store says with the alerts there are, and reports what has come or gone. */
  async look(): Promise<void> {
    await this.flush();
    const { conditions, complete, faults } = await this.#conditions.find();
    const kept = await this.#ports.reader.read();
    const active = kept.book.alerts.filter(isActive);
    const at = this.#now;
    for (const condition of conditions) {
      const { kind, subject, level } = condition;
      const isKnown = active.some((one) => one.kind === kind && one.subject === subject && one.level >= level);
      if (!isKnown) this.#saw(kind, condition.workflow, condition);
    }
    for (const { kind, subject, runs } of active) {
      const isOver = LOOKED_FOR.has(kind)
        ? complete.has(kind) && !conditions.some((one) => one.kind === kind && one.subject === subject)
        : kind === "budget_near" && (await this.#unlessDamaged(() => this.#hasEnded(runs[0]), false));
      if (isOver) this.#report({ kind: "over", at, alert: kind, subject });
    }
    await this.#lookBack(kept);
    await this.flush();
    this.#tell(faults.length === 0 ? null : messageOf(faults[0]));
  }

  /** Reports what journals say was done lately and nobody has told: a process tells it within a second, and may not live that long. */
  async #lookBack({ book, effects }: KeptAlerts): Promise<void> {
    if (!this.#mayLack || !this.#ports.rules.duplicateEffect) return;
    const since = this.#now - LIMITS.lookBackMs;
    const facts = await this.#unlessDamaged(() => this.#ports.factsSince(since), null);
    if (facts === null) return;
    this.#mayLack = false;
    const known = new Set(Object.values(effects).flatMap((part) => part.map(nameOf)));
    const wasSeen = ({ action, at }: KnownEffect) =>
      book.alerts.some(
        ({ kind, subject, lastAt }) => kind === "duplicate_effect" && subject === action && lastAt >= at,
      );
    // Oldest first, as they were done.
    for (const { run, workflow, actions } of [...facts].reverse())
      for (const one of actions.map((action) => ({ ...action, run })))
        if (one.at >= since && !known.has(nameOf(one)) && !wasSeen(one)) this.#did(workflow, one);
  }

  async #hasEnded(run: string | undefined): Promise<boolean> {
    const row = run === undefined ? null : await this.#ports.store.run(run);
    return row === null || isTerminal(row.state);
  }

  /** What is read of one run, or else `nothing` (AW5). */
  async #unlessDamaged<T>(read: () => Promise<T>, nothing: T): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (hasCode(error, "storage_unavailable")) throw error;
      return nothing;
    }
  }

  async #guarded(body: () => Promise<void>): Promise<void> {
    try {
      await body();
    } catch (error) {
      this.#tell(messageOf(error));
    }
  }

  /** Once for each: it is looked every minute, and a damaged row stays until somebody repairs it. */
  #tell(trouble: string | null): void {
    if (trouble !== null && trouble !== this.#told)
      this.#ports.log.warn(`Alerts could not be looked for, and that is tried again. ${trouble}`);
    this.#told = trouble;
  }
}

function nameOf({ action, run, effect }: KnownEffect): string {
  return JSON.stringify([action, run, effect]);
}

/** A failure that another attempt follows opens a wait for it. */
export function isRetry({ key }: Pick<StoredEntry, "key">, waits: RunCommit["waits"]): boolean {
  return waits?.some((change) => "open" in change && change.open.key === `retry:${key}`) === true;
}
