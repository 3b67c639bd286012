// The book of alerts
// What the run of the alerts knows, and what reports do to it. Pure: its keeper reads it, hands reports in, and writes it back.
//
//   AB1. Of one subject at one level there is at most one alert that is not resolved: what is seen again is counted, and nobody is told.
//   AB2. What comes again within the quiet time after its end is an alert of its own, of which nobody is told either.
//   AB3. Reports may come twice and late: times are those of the reports, and what is resolved stays so.
//   AB4. Everything is bounded: the oldest goes first, of what is not resolved last. What was resolved is forgotten after a month.
import { formatMs } from "../base/duration.ts";
import type {
  Alert,
  AlertRules,
  Condition,
  DuplicatesReport,
  EffectMention,
  EffectReport,
  Report,
  RetriesReport,
} from "./alert.ts";
import { isOn } from "./alert.ts";
import { LIMITS } from "./limits.ts";
import { move } from "./state-machine.ts";
import { ALERT, type AlertState } from "./state-machines.ts";

/** Retries of a tool in spans of time, newest last. */
interface Tally {
  readonly workflow: string;
  readonly tool: string;
  readonly counts: readonly (readonly [at: number, count: number])[];
  readonly runs: readonly string[];
  readonly owner: string | null;
}

/** Duplicates of a workflow on one day (UTC). */
export interface DuplicatesOfDay {
  readonly day: number;
  readonly workflow: string;
  readonly count: number;
  readonly runs: readonly string[];
}

export interface AlertBookState {
  readonly alerts: readonly Alert[];
  readonly tallies: readonly Tally[];
  readonly duplicates: readonly DuplicatesOfDay[];
}

/** An action that was reported, in the index of them. */
export interface KnownEffect extends EffectMention {
  readonly action: string;
  readonly at: number;
}

/** The part of the index that an action belongs to: only what changes is written. */
export function bucketOf(digest: (text: string) => string, action: string): string {
  return (digest(action).codePointAt(0) ?? 0).toString(16).padStart(2, "0");
}

const KEPT_ALERTS = 300;
const KEPT_RUNS = 20;
const KEPT_TALLIES = 500;
const KEPT_DAYS = 400;
const KEPT_EFFECTS = 128;
const KEPT_RESOLVED_DAYS = 30;
const DAY_MS = 86_400_000;

export const EMPTY_BOOK: AlertBookState = { alerts: [], tallies: [], duplicates: [] };

export class AlertBook {
  readonly #rules: AlertRules;
  readonly #digest: (text: string) => string;
  #alerts: readonly Alert[];
  #tallies: readonly Tally[];
  #duplicates: readonly DuplicatesOfDay[];
  readonly #effects: Map<string, readonly KnownEffect[]>;
  /** Alerts that people are to be told of. */
  readonly fired: Alert[] = [];
  /** Alerts that have moved, as they are now. */
  readonly moved: Alert[] = [];
  /** Parts of the index that have changed. */
  readonly touched: Set<string> = new Set();

  constructor(
    state: AlertBookState,
    effects: ReadonlyMap<string, readonly KnownEffect[]>,
    rules: AlertRules,
    digest: (text: string) => string,
  ) {
    this.#alerts = state.alerts;
    this.#tallies = state.tallies;
    this.#duplicates = state.duplicates;
    this.#effects = new Map(effects);
    this.#rules = rules;
    this.#digest = digest;
  }

  get state(): AlertBookState {
    return { alerts: this.#alerts, tallies: this.#tallies, duplicates: this.#duplicates };
  }

  effectsIn(bucket: string): readonly KnownEffect[] {
    return this.#effects.get(bucket) ?? [];
  }

  take(report: Report): void {
    switch (report.kind) {
      case "seen":
        return this.#see(report.condition, report.at, report.owner);
      case "over":
        return this.#end(({ kind, subject }) => kind === report.alert && subject === report.subject, report.at, null);
      case "retries":
        return this.#count(report);
      case "effect":
        return this.#compare(report);
      case "duplicates":
        return this.#countDuplicates(report);
      case "acknowledge":
        return this.#move(({ id }) => id === report.id, "acknowledged", {
          acknowledgedAt: report.at,
          acknowledgedBy: report.by,
        });
      case "resolve":
        return this.#end(({ id }) => id === report.id, report.at, report.by);
    }
  }

  /** What follows from the time alone: storms that begin or are over, and what is too old to be kept. */
  settle(now: number): void {
    this.#settleStorms(now);
    this.#duplicates = this.#duplicates.filter(({ day }) => now - day < KEPT_DAYS * DAY_MS).slice(-KEPT_TALLIES);
    const resolvedMs = Math.max(KEPT_RESOLVED_DAYS * DAY_MS, this.#rules.quietMs);
    this.#alerts = this.#alerts.filter(({ resolvedAt }) => resolvedAt === null || now - resolvedAt < resolvedMs);
    const excess = this.#alerts.length - KEPT_ALERTS;
    if (excess <= 0) return;
    const oldest = [...this.#alerts].sort((a, b) => Number(isActive(a)) - Number(isActive(b)) || a.lastAt - b.lastAt);
    const dropped = new Set(oldest.slice(0, excess));
    this.#alerts = this.#alerts.filter((alert) => !dropped.has(alert));
  }

  /** When time alone will change something; `null`: it will not. */
  wakeAt(now: number): number | null {
    const { retryStorm } = this.#rules;
    const times = this.#tallies.flatMap(({ counts }) => counts.map(([at]) => at));
    const oldest = Math.min(...times);
    if (retryStorm === null || !Number.isFinite(oldest)) return null;
    // Only where something fires, it matters when that is over.
    const hasStorm = this.#alerts.some((alert) => alert.kind === "retry_storm" && isActive(alert));
    return hasStorm ? Math.max(now + 1, Math.max(...times) + retryStorm.perMs) : null;
  }

  #see(condition: Condition, at: number, owner: string | null): void {
    if (!isOn(this.#rules, condition.kind)) return;
    const isSame = (one: Alert) =>
      one.kind === condition.kind && one.subject === condition.subject && one.level >= condition.level;
    const known = this.#alerts.find((one) => isSame(one) && isActive(one));
    if (known !== undefined) return this.#replace(known, { ...known, lastAt: at, count: known.count + 1 });
    const before = this.#alerts.findLast(isSame);
    // A report that was on its way when the alert was resolved (AB3).
    if (before?.resolvedAt != null && at < before.resolvedAt) return;
    const isRepeat = before?.resolvedAt != null && at - before.resolvedAt < this.#rules.quietMs;
    const { kind, subject, level } = condition;
    const alert: Alert = {
      ...condition,
      runs: condition.runs.slice(0, KEPT_RUNS),
      id: `al${this.#digest(`${kind}/${subject}/${level}/${at}`)}`,
      status: ALERT.initial,
      owner: owner ?? this.#rules.owner,
      firedAt: at,
      lastAt: at,
      count: 1,
      acknowledgedAt: null,
      acknowledgedBy: null,
      resolvedAt: null,
      resolvedBy: null,
      isRepeat,
    };
    this.#alerts = [...this.#alerts, alert];
    this.moved.push(alert);
    if (!isRepeat) this.fired.push(alert);
  }

  #end(isMeant: (alert: Alert) => boolean, at: number, by: string | null): void {
    this.#move(isMeant, "resolved", { resolvedAt: at, resolvedBy: by });
  }

  /** Those that cannot move any more stay as they are: whoever asked for it was too late. */
  #move(isMeant: (alert: Alert) => boolean, to: AlertState, change: Partial<Alert>): void {
    for (const alert of this.#alerts) {
      if (!isMeant(alert) || !isActive(alert) || alert.status === to) continue;
      const next: Alert = { ...alert, ...change, status: move(ALERT, alert.id, alert.status, to) };
      this.#replace(alert, next);
      this.moved.push(next);
    }
  }

  #replace(alert: Alert, next: Alert): void {
    this.#alerts = this.#alerts.map((one) => (one === alert ? next : one));
  }

  // Retry storms

  #count({ workflow, tool, at, count, runs, owner }: RetriesReport): void {
    const known = this.#tallies.find((one) => one.workflow === workflow && one.tool === tool);
    const tally: Tally = {
      workflow,
      tool,
      owner,
      counts: [...(known?.counts ?? []), [at, count]],
      runs: [...new Set([...runs, ...(known?.runs ?? [])])].slice(0, KEPT_RUNS),
    };
    this.#tallies = [...this.#tallies.filter((one) => one !== known), tally].slice(-KEPT_TALLIES);
  }

  #settleStorms(now: number): void {
    const { retryStorm } = this.#rules;
    if (retryStorm === null) return;
    this.#tallies = this.#tallies.flatMap((tally) => {
      const counts = tally.counts.filter(([at]) => now - at < retryStorm.perMs);
      return counts.length === 0 ? [] : [{ ...tally, counts }];
    });
    const raging = new Set<string>();
    for (const [workflow, tallies] of byWorkflow(this.#tallies)) {
      const storms = tallies.filter((tally) => sumOf([tally]) >= retryStorm.retries);
      // What one tool does is not the workflow's as well.
      const others = tallies.filter((tally) => !storms.includes(tally));
      const found = [
        ...storms.map((tally) => stormOf(workflow, tally.tool, [tally], retryStorm.perMs)),
        ...(sumOf(others) >= retryStorm.retries ? [stormOf(workflow, null, others, retryStorm.perMs)] : []),
      ];
      for (const storm of found) {
        raging.add(storm.subject);
        const isKnown = this.#alerts.some((one) => one.subject === storm.subject && isActive(one));
        if (!isKnown) this.#see(storm, now, tallies[0]?.owner ?? null);
      }
    }
    this.#end(({ kind, subject }) => kind === "retry_storm" && !raging.has(subject), now, null);
  }

  // Duplicates

  #compare({ action, workflow, record, at, owner }: EffectReport): void {
    const bucket = bucketOf(this.#digest, action);
    const known = this.effectsIn(bucket);
    const other = known.find((one) => one.action === action);
    const isOther = other !== undefined && (other.run !== record.run || other.effect !== record.effect);
    if (isOther) this.#see(duplicateOf(action, workflow, other, record), at, owner);
    if (other !== undefined) return;
    this.#effects.set(bucket, [...known, { action, at, ...record }].slice(-KEPT_EFFECTS));
    this.touched.add(bucket);
  }

  #countDuplicates({ workflow, at, count, runs }: DuplicatesReport): void {
    const day = Math.floor(at / DAY_MS) * DAY_MS;
    const known = this.#duplicates.find((one) => one.day === day && one.workflow === workflow);
    const sum: DuplicatesOfDay = {
      day,
      workflow,
      count: (known?.count ?? 0) + count,
      runs: [...new Set([...(known?.runs ?? []), ...runs])].slice(-KEPT_RUNS),
    };
    this.#duplicates = [...this.#duplicates.filter((one) => one !== known), sum];
  }
}

/** The newest actions of the index, in their parts. */
export function newestEffects(
  effects: Readonly<Record<string, readonly KnownEffect[]>>,
): Readonly<Record<string, readonly KnownEffect[]>> {
  const all = Object.entries(effects).flatMap(([bucket, known]) => known.map((one) => ({ bucket, one })));
  const newest = new Set(
    all
      .sort((a, b) => b.one.at - a.one.at)
      .slice(0, LIMITS.alertActions)
      .map(({ one }) => one),
  );
  const parts = Object.entries(effects).map(
    ([bucket, known]) => [bucket, known.filter((one) => newest.has(one))] as const,
  );
  return Object.fromEntries(parts.filter(([, known]) => known.length > 0));
}

export function isActive({ status }: Pick<Alert, "status">): boolean {
  return status !== "resolved";
}

function byWorkflow(tallies: readonly Tally[]): Map<string, Tally[]> {
  const groups = new Map<string, Tally[]>();
  for (const tally of tallies) groups.set(tally.workflow, [...(groups.get(tally.workflow) ?? []), tally]);
  return groups;
}

function sumOf(tallies: readonly Tally[]): number {
  return tallies.flatMap(({ counts }) => counts).reduce((sum, [, count]) => sum + count, 0);
}

function stormOf(workflow: string, tool: string | null, tallies: readonly Tally[], perMs: number): Condition {
  const retries = sumOf(tallies);
  const what = tool === null ? `workflow "${workflow}"` : `"${tool}" of workflow "${workflow}"`;
  return {
    kind: "retry_storm",
    subject: tool === null ? workflow : `${workflow}/${tool}`,
    level: 0,
    workflow,
    runs: tallies.flatMap(({ runs }) => runs),
    summary: `${retries} retries of ${what} within ${formatMs(perMs)}`,
    detail: { workflow, tool, retries, perMs },
  };
}

function duplicateOf(action: string, workflow: string, first: KnownEffect, second: EffectMention): Condition {
  const records = [first, second].map(({ run, effect }) => ({ run, effect }));
  const [one, other] = records.map(({ run, effect }) => `"${effect}" of run ${run}`);
  return {
    kind: "duplicate_effect",
    subject: action,
    level: 0,
    workflow,
    runs: [...new Set(records.map(({ run }) => run))],
    summary: `The same action was done twice: ${one} and ${other}`,
    detail: { action, records },
  };
}
