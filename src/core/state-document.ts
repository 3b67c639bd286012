// The state document
// What a person opens to see where a run stands: a fold of its row and its journal. It decides nothing.
import type { Entry } from "./journal.ts";
import { isStepSuccess } from "./journal.ts";
import type { RunRow } from "./store.ts";
import type { RunState } from "./transition.ts";

export type DocumentStatus = "pending" | "in_progress" | "done" | "failed";

export interface StepRecord {
  readonly status: DocumentStatus;
  readonly attempts?: number;
  readonly completed_at?: string;
}

export interface PhaseRecord {
  readonly status: DocumentStatus;
  readonly started_at?: string;
  readonly completed_at?: string;
  readonly step?: string;
  readonly steps?: Readonly<Record<string, StepRecord>>;
}

export interface StateDocument {
  readonly workflow_id: string;
  readonly workflow: string;
  readonly workflow_version: string;
  readonly started_at: string;
  readonly updated_at: string;
  readonly status: DocumentStatus;
  readonly phase: string | null;
  readonly phases: Readonly<Record<string, PhaseRecord>>;
  readonly state: Readonly<Record<string, unknown>>;
}

const STATUS: Readonly<Record<RunState, DocumentStatus>> = {
  accepted: "pending",
  running: "in_progress",
  retrying: "in_progress",
  waiting: "in_progress",
  compensating: "in_progress",
  parked: "in_progress",
  succeeded: "done",
  failed: "failed",
  cancelled: "failed",
};

/** The readable view of a run. */
export function stateDocument(row: RunRow, entries: readonly Entry[]): StateDocument {
  const steps = stepsOf(entries);
  const open = Object.entries(steps).findLast(([, { status }]) => status === "in_progress");
  const run: PhaseRecord = {
    status: STATUS[row.state],
    ...(row.endedAt !== null && { completed_at: iso(row.endedAt) }),
    ...(open !== undefined && { step: open[0] }),
    steps,
  };
  return {
    workflow_id: row.id,
    workflow: row.workflow,
    workflow_version: row.version,
    started_at: iso(row.createdAt),
    updated_at: iso(Math.max(row.createdAt, entries.at(-1)?.at ?? 0)),
    status: STATUS[row.state],
    phase: entries.length > 1 ? "run" : null,
    phases: entries.length > 1 ? { run } : {},
    state: stateOf(entries),
  };
}

function stepsOf(entries: readonly Entry[]): Record<string, StepRecord> {
  const steps: Record<string, StepRecord> = {};
  for (const { type, key, at } of entries) {
    if (key === null) continue;
    const attempts = (steps[key]?.attempts ?? 0) + 1;
    if (type === "step.started" || type === "effect.planned") steps[key] = { status: "in_progress", attempts };
    else if (isStepSuccess(type)) steps[key] = { ...steps[key], status: "done", completed_at: iso(at) };
    else if (type === "step.failed") steps[key] = { ...steps[key], status: "failed" };
  }
  return steps;
}

function stateOf(entries: readonly Entry[]): Record<string, unknown> {
  const patches = entries.filter(({ type, key }) => type === "state.patched" && key !== null);
  return Object.fromEntries(patches.map(({ key, payload }) => [key, (payload as { value?: unknown } | null)?.value]));
}

function iso(time: number): string {
  return new Date(time).toISOString().replace("Z", "+00:00");
}
