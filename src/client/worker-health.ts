import { readFileSync } from "node:fs";
import { isSameBoot } from "../base/boot.ts";
import { NOTIFY_WORKFLOW } from "../core/notification.ts";
import { SCHEDULE_WORKFLOW } from "../core/slot-run.ts";
import type { ProcessIdentity, Store, WorkerRow } from "../core/store.ts";
import { isPlainlyDead, processIdentity } from "../worker/process-identity.ts";

/**
 * "late": it has missed heartbeats, but its lease still runs. "expired": its lease ran out. "dead": its process is gone. "stopped": its process is
 * there, but does not run.
 */
export type WorkerHealth = "live" | "late" | "expired" | "dead" | "stopped";

/** A worker as the store knows it, and how it is. */
export interface WorkerStatus extends WorkerRow {
  /** How many runs it holds. */
  readonly runs: number;
  readonly health: WorkerHealth;
}

/** A lease is renewed three times in its length: with less than this part of it left, two renewals are missing. */
const LATE_PART = 1 / 3;

export async function examineWorkers(store: Store, mine: ProcessIdentity = processIdentity()): Promise<WorkerStatus[]> {
  const [workers, owners] = await Promise.all([store.workers(), store.owners()]);
  const runs = new Map(owners.map((owner) => [owner.worker, owner.runs]));
  return workers.map((worker) => ({ ...worker, runs: runs.get(worker.id) ?? 0, health: healthOf(worker, mine) }));
}

/** Whether it still works, as far as anybody can tell. */
export function isLive({ health }: Pick<WorkerStatus, "health">): boolean {
  return health === "live" || health === "late";
}

/** What the user has given it: that every worker can keep schedules is no news. */
export function ownHandles(handles: WorkerStatus["handles"]): WorkerStatus["handles"] {
  return handles.filter(({ workflow }) => workflow !== SCHEDULE_WORKFLOW && workflow !== NOTIFY_WORKFLOW);
}

/** A worker as programs are told of it. */
export interface WorkerFacts extends Pick<WorkerStatus, "id" | "name" | "health" | "leaseLeftMs" | "leaseMs" | "runs"> {
  readonly pid: number;
  readonly startedAt: Date;
  readonly workflows: readonly { readonly name: string; readonly version: string }[];
}

export function workerFacts(worker: WorkerStatus): WorkerFacts {
  const { id, name, process, startedAt, health, leaseLeftMs, leaseMs, runs, handles } = worker;
  const workflows = ownHandles(handles).map(({ workflow, version }) => ({ name: workflow, version }));
  return { id, name, pid: process.pid, startedAt: new Date(startedAt), health, leaseLeftMs, leaseMs, runs, workflows };
}

function healthOf(worker: WorkerRow, mine: ProcessIdentity): WorkerHealth {
  const { process: other, leaseLeftMs, leaseMs } = worker;
  // A process of another machine or container can be judged by its lease only.
  const isHere = isSameBoot(other.boot, mine.boot) && other.pidNamespace === mine.pidNamespace;
  if (isHere && isPlainlyDead(other, mine)) return "dead";
  if (isHere && isStopped(other.pid)) return "stopped";
  if (leaseLeftMs < 0) return "expired";
  return leaseLeftMs < leaseMs * LATE_PART ? "late" : "live";
}

/** Only Linux tells: the state after the name, which may itself hold spaces, is T or t for a process that was stopped. */
function isStopped(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return /^[Tt]$/.test(stat.charAt(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}
