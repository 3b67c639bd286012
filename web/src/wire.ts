// Values of the engine as they arrive here: JSON has no dates, so those are ISO texts.
import type { ApprovalPage, ApprovalSummary } from "../../src/client/approvals.ts";
import type { RunStatus, RunSummary } from "../../src/client/run.ts";
import type { Page } from "../../src/client/run-list.ts";
import type { ScheduleSummary } from "../../src/client/schedules.ts";
import type { Timeline } from "../../src/client/timeline.ts";
import type { Explanation } from "../../src/client/why.ts";
import type { WorkerHealth } from "../../src/client/worker-health.ts";
import type { Graph } from "../../src/core/graph.ts";
import type { EffectRecord } from "../../src/core/ledger.ts";
import type { StateDocument } from "../../src/core/state-document.ts";

type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer U)[]
    ? readonly Wire<U>[]
    : T extends object
      ? { readonly [K in keyof T]: Wire<T[K]> }
      : T;

export type WireSummary = Wire<RunSummary>;
export type WireRuns = Wire<Page<RunSummary>>;
export type WireStatus = Wire<RunStatus> & { readonly input?: unknown };
export type WireTimeline = Timeline;
export type WireWhy = Wire<Explanation>;
export type WireEffect = Wire<EffectRecord>;
export type WireApproval = Wire<ApprovalSummary>;
export type WireApprovals = Wire<ApprovalPage>;
export type WireSchedule = Wire<ScheduleSummary>;
export type WireDocument = StateDocument;

export interface WireEntry {
  readonly seq: number;
  readonly at: string | number;
  readonly type: string;
  readonly key: string | null;
  readonly payload: unknown;
}

export interface WireJournal {
  readonly entries: readonly WireEntry[];
  /** Where the next page begins; `null` at the end. */
  readonly next: number | null;
}

export interface WireCounts {
  readonly counts: Readonly<Record<string, number>>;
  /** There are more than were counted. */
  readonly atLeast: boolean;
}

export interface WireGraph {
  readonly graph: Graph;
  readonly way: {
    readonly nodes: Readonly<Record<string, string>>;
    readonly edges: readonly (readonly [string, string])[];
  } | null;
}

export interface WireWorker {
  readonly id: string;
  readonly name: string;
  readonly pid: number;
  readonly startedAt: string;
  readonly health: WorkerHealth;
  readonly leaseLeftMs: number;
  readonly leaseMs: number;
  readonly runs: number;
  readonly workflows: readonly { readonly name: string; readonly version: string }[];
}

export interface WireWorkers {
  readonly workers: readonly WireWorker[];
  readonly stranded?: readonly {
    readonly workflow: string;
    readonly version: string;
    readonly runs: number;
    readonly example: string;
  }[];
}

export interface WireQueues {
  readonly queues: readonly {
    readonly kind: "workflow" | "slot" | "rate";
    readonly name: string;
    readonly limit: number | null;
    /** The span of a rate. */
    readonly perMs: number | null;
    readonly running: number;
    readonly waiting: number;
    /** Since when the first of them could go on. */
    readonly since: string | null;
  }[];
}

export interface WireAlert {
  readonly id: string;
  readonly kind: string;
  readonly status: "firing" | "acknowledged" | "resolved";
  readonly workflow: string | null;
  readonly runs: readonly string[];
  readonly summary: string;
  readonly owner: string | null;
  readonly firedAt: string | number;
  readonly lastAt: string | number;
  readonly count: number;
  readonly acknowledgedBy: string | null;
  readonly resolvedBy: string | null;
}

export interface WireAlerts {
  readonly alerts: readonly WireAlert[];
}

export interface WireAudit {
  readonly records: readonly {
    readonly n: number;
    readonly at: string;
    readonly who: string;
    readonly action: string;
    readonly subject: string | null;
    readonly from: string | null;
    readonly outcome: "begun" | "done" | "refused" | "failed";
    readonly detail: unknown;
  }[];
  readonly cursor: number | null;
}

/** A part of a whole, with the runs behind it. */
export interface WireRatio {
  readonly value: number | null;
  readonly good: number;
  readonly total: number;
  readonly runs: readonly string[];
  readonly bad: readonly string[];
}

export interface WireMetrics {
  readonly runs: number;
  readonly isComplete: boolean;
  readonly resumeSuccess: WireRatio;
  readonly duplicateSafety: WireRatio;
  readonly retrySuccess: WireRatio;
  readonly compensationSuccess: WireRatio;
  readonly cancellationCorrectness: WireRatio;
  readonly replaySuccess: WireRatio;
  readonly incidentRecurrence: WireRatio;
  readonly approvalWait: readonly {
    readonly workflow: string;
    readonly approver: string;
    readonly count: number;
    readonly medianMs: number;
    readonly p95Ms: number;
    readonly runs: readonly string[];
  }[];
}
