import { hasCode } from "../../base/errors.ts";
import type { FenceReply, FenceRequest, Mail, NewWorker, OwnerRow, WorkerRow } from "../../core/store.ts";
import { type Lease, leaseLeftMs } from "../lease.ts";
import type { Connection, Row } from "./connection.ts";
import { HAS_PROGRESSED } from "./progress.ts";
import { MAIL_COLUMNS, mailOf, readHandles } from "./rows.ts";

export interface Moment {
  /** Wall time. */
  readonly now: number;
  /** Lease time. */
  readonly monotonic: number;
}

const INSERT = `insert or replace into workers (id, name, pid, process_started, boot, pid_namespace, handles, started_at, lease_ms,
  renewed_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

export function register(db: Connection, worker: NewWorker, { now, monotonic }: Moment): void {
  const { id, name, leaseMs, process, handles } = worker;
  const { pid, startedAt, boot, pidNamespace } = process;
  db.run(INSERT, id, name, pid, startedAt, boot, pidNamespace, JSON.stringify(handles), now, leaseMs, monotonic);
}

// A heartbeat that had to wait may come after one that was sent later, from another thread: the lease never gets shorter (P37).
export const RENEW = "update workers set renewed_at = max(renewed_at, ?) where id = ?";
export const COUNT_OTHERS = "select count(*) as others from workers where id <> ?";

export function heartbeat(db: Connection, id: string, monotonic: number): { alive: boolean; others: number } {
  const alive = db.run(RENEW, monotonic, id) === 1;
  return { alive, others: countOthers(db, id) };
}

export function countOthers(db: Connection, id: string): number {
  return db.get(COUNT_OTHERS, id)?.others as number;
}

const LIST = "select * from workers order by started_at, id";

/** `monotonic` is called after the rows were read; see `leaseLeftMs`. */
export function listWorkers(db: Connection, monotonic: () => number, boot: string | null): WorkerRow[] {
  const rows = db.all(LIST);
  const now = monotonic();
  return rows.map((row) => workerRow(row, now, boot));
}

const OWNERS =
  "select owner as worker, count(*) as runs from runs where owner is not null group by owner order by owner";

export function listOwners(db: Connection): OwnerRow[] {
  return db.all(OWNERS).map(({ worker, runs }) => ({ worker: worker as string, runs: runs as number }));
}

function workerRow(row: Row, monotonic: number, boot: string | null): WorkerRow {
  const process = {
    pid: row.pid as number,
    startedAt: row.process_started as string | null,
    boot: row.boot as string,
    pidNamespace: row.pid_namespace as string | null,
  };
  const leaseMs = row.lease_ms as number;
  return {
    id: row.id as string,
    name: row.name as string,
    leaseMs,
    process,
    // A worker whose list is damaged can still die and be fenced; `inspect` names it.
    handles: readHandles(row.handles) ?? [],
    startedAt: row.started_at as number,
    leaseLeftMs: leaseLeftMs({ boot: process.boot, leaseMs, renewedAt: row.renewed_at as number }, monotonic, boot),
  };
}

const DELETE = "delete from workers where id = ?";
const MOVE = "update runs set owner = ? where owner = ?";
const OWNED = `select ${MAIL_COLUMNS} from runs where owner = ? order by n`;

// Claimable again, except a parked run that no decision and no unseen cancel concerns. Deaths are counted since the last progress (P28).
const RELEASE = `update runs set owner = null, claims = case when ?3 or ${HAS_PROGRESSED} then 0 else claims end,
  ready_at = case when state <> 'parked' or (cancel is not null and cancelling = 0)
      or exists (select 1 from inbox where run = runs.n and consumed = 0 and kind = 'decision')
    then ?2 end
  where owner = ?1 returning ready_at is not null as is_ready`;

/** Ends the incarnations first; what they owned moves or is released after that (P20). */
export function fence(
  db: Connection,
  { workers: named, successor, ifExpired = false }: FenceRequest,
  moment: Moment,
  isExpired: (lease: Lease) => boolean,
): FenceReply {
  const workers = ifExpired ? named.filter((worker) => holdsNothing(db, worker, isExpired)) : named;
  for (const worker of workers) db.run(DELETE, worker);
  if (successor === undefined) {
    const released = workers.map((worker) => release(db, worker, moment.now, false));
    return { moved: [], released: released.reduce((sum, runs) => sum + runs, 0) };
  }
  register(db, successor, moment);
  for (const worker of workers) db.run(MOVE, successor.id, worker);
  return { moved: mailOfOwned(db, successor.id), released: 0 };
}

const LEASE = "select boot, lease_ms, renewed_at from workers where id = ?";

function holdsNothing(db: Connection, worker: string, isExpired: (lease: Lease) => boolean): boolean {
  const row = db.get(LEASE, worker);
  if (row === undefined) return true;
  const { boot, lease_ms: leaseMs, renewed_at: renewedAt } = row;
  return isExpired({ boot: boot as string, leaseMs: leaseMs as number, renewedAt: renewedAt as number });
}

export function retire(db: Connection, worker: string, now: number): void {
  db.run(DELETE, worker);
  release(db, worker, now, true);
}

/** Gives all runs of a worker up; returns how many can be claimed now. */
function release(db: Connection, worker: string, now: number, isHandedBack: boolean): number {
  db.fault("statement");
  return db.all(RELEASE, worker, now, Number(isHandedBack)).filter((row) => row.is_ready === 1).length;
}

const NEWS = `select ${MAIL_COLUMNS} from runs where owner = ? and owner is not null
  and (unread > 0 or (cancel is not null and cancelling = 0)) order by n`;

export function mailOfOwned(db: Connection, worker: string): Mail[] {
  return db.all(OWNED, worker).flatMap((row) => readableMail(db, row));
}

export function newsOf(db: Connection, worker: string): Mail[] {
  return db.all(NEWS, worker).flatMap((row) => readableMail(db, row));
}

/** One damaged run must not keep the mail of all others back. */
function readableMail(db: Connection, row: Row): Mail[] {
  try {
    return [mailOf(db, row)];
  } catch (error) {
    if (!hasCode(error, "corrupted_journal")) throw error;
    return [];
  }
}
