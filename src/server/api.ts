// The API as a type: what goes into each route of the table, and what comes out. For clients; the table itself is `routes/all.ts`, and a test
// compares the two.

import type { Advanced } from "../client/advance.ts";
import type { AlertQuery, AlertSummary } from "../client/alerts.ts";
import type { LinkSummary } from "../client/approval-links.ts";
import type { ApprovalPage, ApprovalSummary, DecisionReceipt } from "../client/approvals.ts";
import type { AuditCheck } from "../client/audit.ts";
import type { BulkOutcome } from "../client/bulk.ts";
import type { RunDiff } from "../client/diff.ts";
import type { StrandedRuns } from "../client/doctor.ts";
import type { ExportedRun } from "../client/export.ts";
import type { Hold } from "../client/operations.ts";
import type { QueueStatus } from "../client/queues.ts";
import type { RunStatus, RunSummary } from "../client/run.ts";
import type { Page, RunTotals } from "../client/run-list.ts";
import type { NodeStatus } from "../client/run-way.ts";
import type { ScheduleSummary } from "../client/schedules.ts";
import type { Timeline } from "../client/timeline.ts";
import type { Explanation } from "../client/why.ts";
import type { WorkerFacts } from "../client/worker-health.ts";
import type { Risk, VoteDecision } from "../core/approval.ts";
import type { AuditRecord } from "../core/audit.ts";
import type { ForkEffects } from "../core/dry.ts";
import type { Graph } from "../core/graph.ts";
import type { Entry } from "../core/journal.ts";
import type { EffectRecord } from "../core/ledger.ts";
import type { Misfire, Overlap } from "../core/schedule.ts";
import type { StateDocument } from "../core/state-document.ts";
import type { PublicStatus, RunState } from "../core/transition.ts";
import type { PawlEvent } from "../core/trigger.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Role } from "./credentials.ts";
import type { ApiDocument } from "./openapi.ts";
import type { WorkflowLine } from "./workflow-list.ts";

/** Which runs are meant. Times are ISO 8601 text. */
export interface RunFilterText {
  readonly workflow?: string;
  readonly status?: PublicStatus;
  readonly state?: RunState;
  readonly tag?: string;
  readonly parent?: string;
  readonly owner?: string;
  readonly q?: string;
  readonly after?: string;
  readonly before?: string;
}

interface MetricsText {
  readonly since?: string;
  readonly workflow?: string;
}

interface PageText {
  readonly cursor?: string;
  readonly limit?: number;
}

/** Who has signed in. */
export interface SessionFacts {
  readonly user: string;
  readonly role: Role;
  readonly roles: readonly Role[];
  readonly store: string;
  readonly csrf: string | null;
}

interface Done {
  readonly ok: true;
}

interface Started {
  readonly id: string;
}

/** How a run is started. */
export interface StartText {
  readonly id?: string;
  readonly key?: string;
  readonly tags?: readonly string[];
  readonly delay?: string;
  readonly deadline?: string;
  readonly priority?: number;
  readonly version?: string;
  readonly advance?: boolean;
  readonly budget?: Readonly<Record<string, unknown>>;
}

interface ScheduleText {
  readonly workflow: string;
  readonly cron?: string;
  readonly every?: string;
  readonly zone?: string;
  readonly anchor?: string;
  readonly input?: unknown;
  readonly overlap?: Overlap;
  readonly misfire?: Misfire;
  readonly tags?: readonly string[];
  readonly priority?: number;
  readonly deadline?: string;
  readonly version?: string;
}

/** A line of the audit log. */
export interface AuditLine extends Omit<AuditRecord, "at" | "detail"> {
  readonly at: Date;
  readonly detail: Readonly<Record<string, unknown>> | null;
}

/** An event of a live view. */
export type Live<E extends string, D> = { readonly event: E; readonly id: string | null; readonly data: D };

/** Every route: its query, its body, its answer as the library has it, or its events. */
export interface Api {
  "GET /api/health": { answer: Done };
  "GET /api/ready": { answer: Done };
  "GET /api/openapi.json": { answer: ApiDocument };
  "POST /api/session": { body: { readonly token: string }; answer: SessionFacts };
  "GET /api/session": { answer: SessionFacts };
  "DELETE /api/session": { answer: Done };
  "GET /api/runs": { query: RunFilterText & PageText; answer: Page<RunSummary> };
  "POST /api/runs": {
    body: { readonly workflow: string; readonly input?: unknown; readonly options?: StartText };
    answer: Started;
  };
  "GET /api/runs/counts": { query: RunFilterText; answer: RunTotals };
  "POST /api/runs/bulk": {
    body: {
      readonly action: "cancel" | "retry";
      readonly filter: RunFilterText;
      readonly dryRun: boolean;
      readonly reason?: string;
    };
    answer: BulkOutcome;
  };
  "POST /api/runs/:id/hold": { body: { readonly reason: string }; answer: Hold };
  "DELETE /api/runs/:id/hold": { answer: Hold };
  "GET /api/runs/:id": { answer: RunStatus & { readonly input?: unknown; readonly hold?: Hold } };
  "GET /api/runs/:id/timeline": { answer: Timeline };
  "GET /api/runs/:id/journal": {
    query: { readonly from?: number; readonly limit?: number };
    answer: { readonly entries: readonly Entry[]; readonly next: number | null };
  };
  "GET /api/runs/:id/effects": { answer: readonly EffectRecord[] };
  "GET /api/runs/:id/diff/:other": { answer: RunDiff };
  "GET /api/runs/:id/document": { answer: StateDocument };
  "GET /api/runs/:id/why": { answer: Explanation };
  "GET /api/runs/:id/graph": {
    answer: {
      readonly graph: Graph;
      readonly way: { readonly nodes: Readonly<Record<string, NodeStatus>>; readonly edges: readonly string[][] };
    };
  };
  "GET /api/runs/:id/export": { query: { readonly redact?: boolean }; answer: ExportedRun };
  "POST /api/runs/:id/signal": {
    body: { readonly name: string; readonly payload?: unknown; readonly id?: string };
    answer: Done;
  };
  "POST /api/runs/:id/cancel": {
    body: { readonly reason?: string; readonly compensate?: boolean };
    answer: { readonly run: string; readonly outcome: "cancelling" | "cancelled" | "succeeded" | "failed" | null };
  };
  "POST /api/runs/:id/retry": { body: { readonly from?: string }; answer: Started };
  "POST /api/runs/:id/fork": {
    body: { readonly at: string | number; readonly effects?: ForkEffects };
    answer: Started;
  };
  "POST /api/runs/:id/resolve": {
    body: { readonly choice: string; readonly value?: unknown; readonly step?: string };
    answer: Done;
  };
  "POST /api/runs/:id/advance": {
    body: { readonly to?: "phase" | "end" };
    answer: Advanced & { readonly isPending?: boolean };
  };
  "POST /api/runs/:id/report": {
    body: { readonly step: string; readonly action: "begin" | "done" | "fail"; readonly reason?: string };
    answer: Done;
  };
  "GET /api/runs/:id/events": { query: { readonly after?: number }; events: Live<"entry", Entry> };
  "GET /api/runs/:id/stream": {
    query: { readonly after?: string; readonly key?: string };
    events: Live<"stream", import("../client/stream.ts").StreamEvent>;
  };
  "GET /api/changes": {
    query: RunFilterText & { readonly limit?: number };
    events: Live<"runs", { readonly runs: readonly RunSummary[] }>;
  };
  "GET /api/approvals": {
    query: PageText & { readonly run?: string; readonly risk?: Risk; readonly mine?: boolean };
    answer: ApprovalPage;
  };
  "GET /api/approvals/:id": { answer: ApprovalSummary };
  "GET /api/approvals/:id/links": { answer: { readonly links: readonly LinkSummary[] } };
  "POST /api/approvals/:id/links": {
    body: {
      readonly for: string;
      readonly roles?: readonly string[];
      readonly expires?: string;
      readonly signIn?: boolean;
    };
    answer: { readonly id: string; readonly url: string; readonly expiresAt: Date };
  };
  "DELETE /api/approvals/:id/links/:link": { answer: Done };
  "POST /api/approvals/:id/decide": {
    body: {
      readonly decision: VoteDecision;
      readonly hash: string;
      readonly reason?: string;
      readonly arguments?: unknown;
    };
    answer: DecisionReceipt;
  };
  "GET /api/workers": {
    answer: {
      readonly workers: readonly WorkerFacts[];
      readonly stranded: readonly StrandedRuns[];
      readonly isComplete: boolean;
    };
  };
  "GET /api/queues": { answer: { readonly queues: readonly QueueStatus[]; readonly isComplete: boolean } };
  "GET /api/workflows": { answer: { readonly workflows: readonly WorkflowLine[] } };
  "GET /api/schedules": { answer: { readonly schedules: readonly ScheduleSummary[] } };
  "PUT /api/schedules/:name": { body: ScheduleText; answer: Done };
  "DELETE /api/schedules/:name": { answer: Done };
  "POST /api/schedules/:name/pause": { answer: Done };
  "POST /api/schedules/:name/resume": { answer: Done };
  "POST /api/hooks/:name": { answer: { readonly id: string } };
  "POST /api/events": { body: PawlEvent; answer: { readonly runs: readonly string[] } };
  "GET /api/audit": {
    query: { readonly cursor?: number; readonly limit?: number };
    answer: { readonly records: readonly AuditLine[]; readonly cursor: number | null };
  };
  "GET /api/audit/check": { answer: AuditCheck };
  "GET /api/alerts": { query: AlertQuery; answer: { readonly alerts: readonly AlertSummary[] } };
  "POST /api/alerts/:id/acknowledge": { answer: { readonly alert: AlertSummary } };
  "POST /api/alerts/:id/resolve": { answer: { readonly alert: AlertSummary } };
  "GET /api/metrics": { query: MetricsText; answer: Metrics };
  "GET /metrics": { query: MetricsText; answer: string };
}
