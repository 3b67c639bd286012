import type { FenceReply, FenceRequest, NewWorker, OwnerRow, WorkerRow } from "../../core/store.ts";
import { leaseLeftMs } from "../lease.ts";
import { isProgress } from "../progress.ts";
import { mailOf } from "./claim.ts";
import { inCreationOrder, type MemoryRun, type MemoryWorker, mayRun, patchRow, type Tables } from "./tables.ts";

export interface Moment {
  /** Wall time. */
  readonly now: number;
  /** Lease time. */
  readonly monotonic: number;
}

export function register(tables: Pick<Tables, "workers">, worker: NewWorker, { now, monotonic }: Moment): void {
  tables.workers.set(worker.id, { worker: copyOf(worker), startedAt: now, renewedAt: monotonic });
}

/** The caller's own must not change what the store has, nor the other way round. */
function copyOf(worker: NewWorker): NewWorker {
  return { ...worker, process: { ...worker.process }, handles: worker.handles.map((handle) => ({ ...handle })) };
}

export function heartbeat(
  tables: Pick<Tables, "workers">,
  id: string,
  monotonic: number,
): { alive: boolean; others: number } {
  const worker = tables.workers.get(id);
  if (worker === undefined) return { alive: false, others: tables.workers.size };
  worker.renewedAt = monotonic;
  return { alive: true, others: tables.workers.size - 1 };
}

export function listWorkers(tables: Pick<Tables, "workers">, monotonic: number, boot: string | null): WorkerRow[] {
  return [...tables.workers.values()]
    .map((found) => ({
      ...copyOf(found.worker),
      startedAt: found.startedAt,
      leaseLeftMs: leftOf(found, monotonic, boot),
    }))
    .sort((a, b) => a.startedAt - b.startedAt || (a.id < b.id ? -1 : 1));
}

export function listOwners(tables: Tables): OwnerRow[] {
  const counts = new Map<string, number>();
  for (const { row } of tables.runs.values())
    if (row.owner !== null) counts.set(row.owner, (counts.get(row.owner) ?? 0) + 1);
  return [...counts].map(([worker, runs]) => ({ worker, runs })).sort((a, b) => (a.worker < b.worker ? -1 : 1));
}

/** Ends the incarnations first; what they owned moves or is released after that (P20). */
export function fence(tables: Tables, request: FenceRequest, moment: Moment, boot: string | null): FenceReply {
  const { workers, successor, ifExpired = false } = request;
  const left = [...new Set(workers)].filter((id) => !ifExpired || isExpired(tables.workers.get(id), moment, boot));
  for (const worker of left) tables.workers.delete(worker);
  if (successor !== undefined) register(tables, successor, moment);
  const runs = left.flatMap((worker) => ownedBy(tables, worker)).sort(inCreationOrder);
  if (successor === undefined) return { moved: [], released: release(runs, moment.now) };
  for (const run of runs) patchRow(run, { owner: successor.id });
  return { moved: ownedBy(tables, successor.id).map(mailOf), released: 0 };
}

/** One that is gone holds nothing any more. */
function isExpired(found: MemoryWorker | undefined, { monotonic }: Moment, boot: string | null): boolean {
  return found === undefined || leftOf(found, monotonic, boot) < 0;
}

function leftOf({ worker, renewedAt }: MemoryWorker, monotonic: number, boot: string | null): number {
  return leaseLeftMs({ boot: worker.process.boot, leaseMs: worker.leaseMs, renewedAt }, monotonic, boot);
}

export function retire(tables: Tables, worker: string, now: number): void {
  tables.workers.delete(worker);
  const runs = ownedBy(tables, worker);
  for (const run of runs) patchRow(run, { claims: 0 });
  release(runs, now);
}

/** Gives runs up; returns how many can be claimed now. Deaths are counted since the last progress (P28). */
export function release(runs: readonly MemoryRun[], now: number): number {
  for (const run of runs) {
    const claims = run.journal.slice(run.claimedHead).some(isProgress) ? 0 : run.row.claims;
    patchRow(run, { owner: null, readyAt: mayRun(run) ? now : null, claims });
  }
  return runs.filter(mayRun).length;
}

export function ownedBy(tables: Tables, worker: string): MemoryRun[] {
  return [...tables.runs.values()].filter((run) => run.row.owner === worker).sort(inCreationOrder);
}
