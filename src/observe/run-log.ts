// What the log is told of runs
// One line for each thing that has become true of a run: never before its commit is durable, and never in replay. `event` and the names of the
// fields are stable; the text is for people. What somebody should act on is logged where it is found, as a warning or an error.
import { messageOf } from "../base/errors.ts";
import type { Log } from "../core/context.ts";
import type { EffectPlanned, Ended, Entry, EntryType, StepFailed, StepStarted } from "../core/journal.ts";
import type { Committed, ObservedRun, Observer } from "../core/observer.ts";
import { isOwnWorkflow } from "../core/own-workflows.ts";

interface Line {
  readonly level: "debug" | "info";
  readonly event: string;
  readonly text: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** Writes what becomes of runs to a log such as pino's. */
export function runLog(log: Log): Observer {
  return {
    committed(commit: Committed) {
      const { run, entries, open } = commit;
      if (isOwnWorkflow(run.workflow)) return;
      for (const entry of entries) if (entry.type in LINES) write(log, run, open(entry));
    },
  };
}

function write(log: Log, { id, workflow, traceId }: ObservedRun, entry: Entry): void {
  const line = LINES[entry.type]?.(entry);
  if (line === undefined) return;
  const step = entry.key === null ? {} : { step: entry.key };
  const subject = entry.key === null ? `Run ${id} of ${workflow}` : `"${entry.key}" of run ${id}`;
  log[line.level](`${subject} ${line.text}.`, {
    event: line.event,
    run: id,
    workflow,
    ...step,
    traceId,
    ...line.fields,
  });
}

const LINES: Readonly<Partial<Record<EntryType, (entry: Entry) => Line>>> = {
  "run.started": () => ({ level: "info", event: "run.started", text: "has started" }),
  "run.continued": () => ({ level: "info", event: "run.continued", text: "goes on as a new generation" }),
  "run.resolved": ({ payload }) => ({
    level: "info",
    event: "run.resolved",
    text: "was decided about",
    fields: { choice: (payload as { choice: string }).choice },
  }),
  "run.cancelling": () => ({ level: "info", event: "run.cancelling", text: "is being stopped" }),
  "run.compensating": () => ({ level: "info", event: "run.compensating", text: "takes back what it has done" }),
  "run.succeeded": () => ended("succeeded", "completed"),
  "run.failed": ({ payload }) => ended("failed", (payload as Ended).stopReason, (payload as Ended).error),
  "run.cancelled": ({ payload }) => ended("cancelled", (payload as Ended).stopReason),
  "step.started": ({ payload }) => ({
    level: "debug",
    event: "step.started",
    text: "begins",
    fields: { attempt: (payload as StepStarted)?.attempt ?? 1 },
  }),
  "effect.planned": ({ payload }) => ({
    level: "debug",
    event: "step.started",
    text: "begins",
    fields: { attempt: 1, class: (payload as EffectPlanned).class },
  }),
  "step.completed": () => ({ level: "debug", event: "step.completed", text: "is done" }),
  "effect.executed": () => ({ level: "debug", event: "step.completed", text: "is done" }),
  "effect.compensated": () => ({ level: "info", event: "effect.compensated", text: "is taken back" }),
  "step.failed": ({ payload }) => failed(payload as StepFailed),
  "effect.unknown": ({ payload }) => ({
    level: "info",
    event: "effect.unknown",
    text: "may or may not have happened",
    fields: { attempt: (payload as { attempt: number }).attempt },
  }),
  checkpoint: () => ({ level: "debug", event: "checkpoint", text: "has saved a checkpoint" }),
  "approval.requested": () => ({ level: "info", event: "approval.requested", text: "waits for an approval" }),
  "approval.escalated": ({ payload }) => ({
    level: "info",
    event: "approval.escalated",
    text: "was not decided about in time",
    fields: { what: (payload as { event: string }).event, level: (payload as { level: number }).level },
  }),
  "approval.decided": ({ payload }) => ({
    level: "info",
    event: "approval.decided",
    text: "is decided about",
    fields: { decision: (payload as { decision: string }).decision },
  }),
  "version.changed": () => ({ level: "info", event: "version.changed", text: "is taken over by newer code" }),
};

function ended(status: string, stopReason: string, error?: unknown): Line {
  const why = error === undefined ? {} : { error: messageOf(error) };
  return {
    level: "info",
    event: "run.ended",
    text: status === "cancelled" ? "was cancelled" : `has ${status}`,
    fields: { status, stopReason, ...why },
  };
}

function failed({ attempt, error, retryAt }: StepFailed): Line {
  const fields = { attempt, error: messageOf(error) };
  if (retryAt === null) return { level: "info", event: "step.failed", text: "has failed", fields };
  const when = { ...fields, retryAt: new Date(retryAt).toISOString() };
  return { level: "info", event: "step.retried", text: "has failed and is tried again", fields: when };
}
