// Metrics
// How runs have fared: eight numbers, each with the runs behind it, and the state of the store and of this process. Pure: what was read goes in.
import type { RunState } from "../core/transition.ts";
import type { ProcessMetrics } from "./operating-counters.ts";
import type { RunFacts } from "./run-facts.ts";

/** A part of a whole. */
export interface Ratio {
  /** `null`: there is nothing to be a part of. */
  readonly value: number | null;
  readonly good: number;
  readonly total: number;
  /** All runs that it counts something of, and those of them that it counts something bad of. */
  readonly runs: readonly string[];
  readonly bad: readonly string[];
}

/** How long people took to decide, of one workflow and one of those who could decide. */
export interface ApprovalWait {
  readonly workflow: string;
  readonly approver: string;
  readonly count: number;
  readonly medianMs: number;
  readonly p95Ms: number;
  readonly runs: readonly string[];
}

/** Something that went wrong in production, and the regression case that was there for it before, if one was. */
export interface KnownIncident {
  readonly run: string;
  readonly openedAt: Date;
  /** When the case for it was made; `null`: there is none. */
  readonly caseSince: Date | null;
}

export interface QualityMetrics {
  /** Of the runs that went on after a crash, a park or a retry: those that came to an end without anybody's repair. */
  readonly resumeSuccess: Ratio;
  /** Of the deliveries that had come before: those that led to no second run and no second effect. */
  readonly duplicateSafety: Ratio;
  /** Of the steps that were tried again: those that succeeded in the end. */
  readonly retrySuccess: Ratio;
  /** Of the actions that were to be undone: those that were. */
  readonly compensationSuccess: Ratio;
  readonly approvalWait: readonly ApprovalWait[];
  /** Of the runs that were cancelled: those that did nothing outside after that. */
  readonly cancellationCorrectness: Ratio;
  /** Of the replays that the journals tell of: those that came to the recorded decisions. */
  readonly replaySuccess: Ratio;
  /** Of the incidents: those whose regression case had existed before. */
  readonly incidentRecurrence: Ratio;
}

export interface StoreMetrics {
  readonly runsByState: Readonly<Partial<Record<RunState, number>>>;
  /** Open waits by kind. */
  readonly waits: Readonly<Record<string, number>>;
  /** How long the run that has waited longest for a worker has done so. */
  readonly queueAgeMs: number;
  /** False: there are more than were counted. */
  readonly isComplete: boolean;
}

export interface Metrics extends QualityMetrics {
  readonly since: Date;
  readonly until: Date;
  readonly workflow: string | null;
  /** How many runs were looked at; where that is not all of the time asked for, the newest ones. */
  readonly runs: number;
  readonly isComplete: boolean;
  readonly store: StoreMetrics;
  /** Of this process, since it was opened. */
  readonly process: ProcessMetrics;
}

/** Deliveries that had come before, and the runs that they led to. */
export interface DuplicateCount {
  readonly count: number;
  readonly runs: readonly string[];
}

export function qualityOf(
  facts: readonly RunFacts[],
  duplicates: DuplicateCount,
  incidents: readonly KnownIncident[],
): QualityMetrics {
  const resumed = facts.filter((one) => one.resumed === "clean" || one.resumed === "repaired");
  const cancelled = facts.filter((one) => one.cancelled !== null);
  const recurred = incidents.filter(({ caseSince, openedAt }) => caseSince !== null && caseSince < openedAt);
  return {
    resumeSuccess: ratioOf(resumed.map(({ run, resumed: how }) => ({ run, total: 1, good: how === "clean" ? 1 : 0 }))),
    duplicateSafety: duplicateSafety(facts, duplicates),
    retrySuccess: ratioOf(facts.map(({ run, retried: { total, succeeded } }) => ({ run, total, good: succeeded }))),
    compensationSuccess: ratioOf(
      facts.map(({ run, undone: { started, completed } }) => ({ run, total: started, good: completed })),
    ),
    approvalWait: approvalWaits(facts),
    cancellationCorrectness: ratioOf(
      cancelled.map(({ run, cancelled: how }) => ({ run, total: 1, good: how === "clean" ? 1 : 0 })),
    ),
    replaySuccess: ratioOf(facts.map(({ run, replays: { total, failed } }) => ({ run, total, good: total - failed }))),
    // Here, the part that is counted is the bad one.
    incidentRecurrence: {
      ...part(recurred.length, incidents.length),
      runs: incidents.map(({ run }) => run),
      bad: recurred.map(({ run }) => run),
    },
  };
}

interface Part {
  readonly run: string;
  readonly total: number;
  readonly good: number;
}

function ratioOf(parts: readonly Part[]): Ratio {
  const counted = parts.filter(({ total }) => total > 0);
  const sum = (of: (one: Part) => number) => counted.reduce((all, one) => all + of(one), 0);
  return {
    ...part(
      sum(({ good }) => good),
      sum(({ total }) => total),
    ),
    runs: counted.map(({ run }) => run),
    bad: counted.filter(({ total, good }) => good < total).map(({ run }) => run),
  };
}

function part(good: number, total: number): Pick<Ratio, "value" | "good" | "total"> {
  return { value: total === 0 ? null : good / total, good, total };
}

/** Every action that was done again is a delivery that leaked, whether anybody knew it for a duplicate or not. */
function duplicateSafety(facts: readonly RunFacts[], duplicates: DuplicateCount): Ratio {
  const first = new Map<string, string>();
  const leaks: string[] = [];
  for (const { run, actions } of [...facts].reverse())
    for (const { action } of actions) {
      if (first.has(action)) leaks.push(first.get(action) as string, run);
      else first.set(action, run);
    }
  const bad = [...new Set(leaks)];
  const leaked = leaks.length / 2;
  return {
    ...part(duplicates.count, duplicates.count + leaked),
    runs: [...new Set([...duplicates.runs, ...bad])],
    bad,
  };
}

function approvalWaits(facts: readonly RunFacts[]): ApprovalWait[] {
  const groups = new Map<string, { readonly waits: number[]; readonly runs: Set<string> }>();
  for (const { run, workflow, approvals } of facts)
    for (const { approvers, waitedMs } of approvals)
      for (const approver of approvers) {
        const key = JSON.stringify([workflow, approver]);
        const group = groups.get(key) ?? { waits: [], runs: new Set<string>() };
        group.waits.push(waitedMs);
        group.runs.add(run);
        groups.set(key, group);
      }
  return [...groups]
    .map(([key, { waits, runs }]) => {
      const [workflow = "", approver = ""] = JSON.parse(key) as string[];
      const sorted = waits.sort((a, b) => a - b);
      return {
        workflow,
        approver,
        count: sorted.length,
        medianMs: percentile(sorted, 0.5),
        p95Ms: percentile(sorted, 0.95),
        runs: [...runs],
      };
    })
    .sort((a, b) => (`${a.workflow} ${a.approver}` < `${b.workflow} ${b.approver}` ? -1 : 1));
}

/** The smallest value that at least this part of all does not exceed. */
function percentile(sorted: readonly number[], p: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * p) - 1)] ?? 0;
}
