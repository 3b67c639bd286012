// The conditions of a run's part, all checked before anything of it is written, so that a refusal leaves no trace (P18).
import { counterKey } from "../../core/counters.ts";
import type { CounterChange, KeyRow, RunCommit, Verdict } from "../../core/store.ts";
import { counted, isPast, limitOf, refusalOf } from "../counters.ts";
import type { Connection, Row } from "./connection.ts";
import { RUN_COLUMNS, runRow } from "./rows.ts";

/** What is stored of the run that a part is for. */
export interface Found {
  readonly n: number;
  readonly owner: string | null;
  readonly head: number;
  readonly hasEnded: boolean;
  readonly wake: number;
  readonly cancel: string | null;
}

const FIND = `select n, owner, state in ('succeeded', 'failed', 'cancelled') as has_ended, wake, cancel,
  (select max(seq) + 1 from journal where run = runs.n) as head from runs where id = ?`;

export function findRun(db: Connection, id: string): Found | null {
  const row = db.get(FIND, id);
  if (row === undefined) return null;
  return {
    n: row.n as number,
    owner: row.owner as string | null,
    head: (row.head as number | null) ?? 0,
    hasEnded: row.has_ended === 1,
    wake: row.wake as number,
    cancel: row.cancel as string | null,
  };
}

const READ_WAKE = "select wake, cancel from runs where n = ?";

/** What may have come from outside for a run that this worker holds. */
export function readWake(db: Connection, n: number): Pick<Found, "wake" | "cancel"> {
  const row = db.statement(READ_WAKE).get(n);
  return { wake: (row?.wake ?? 0) as number, cancel: (row?.cancel ?? null) as string | null };
}

export function whyNotHere(
  db: Connection,
  worker: string | null,
  part: RunCommit,
  found: Found | null,
): Verdict | null {
  if (part.create !== undefined) return found === null ? null : existing(db, part.run);
  const isOurs = found !== null && worker !== null && found.owner === worker && !found.hasEnded;
  if (isOurs && found.head === part.head) return null;
  return { run: part.run, kind: "conflict", head: found?.head ?? 0 };
}

function existing(db: Connection, run: string): Verdict {
  const row = db.get(`select ${RUN_COLUMNS} from runs where id = ?`, run) as Row;
  return { run, kind: "refused", why: "exists", holder: runRow(row) };
}

/** The counter and the cancel mark as they are now decide, not as the worker last saw them (P18, P19). */
export function whyNotNow(part: RunCommit, found: Pick<Found, "wake" | "cancel"> | null): Verdict | null {
  if (part.ifWake !== undefined && part.ifWake !== (found?.wake ?? 0)) {
    return { run: part.run, kind: "refused", why: "wake" };
  }
  const isCancelled = part.ifNotCancelled === true && (found?.cancel ?? null) !== null;
  return isCancelled ? { run: part.run, kind: "refused", why: "cancel" } : null;
}

const IS_UNREAD = "select 1 from inbox where run = ? and id = ? and consumed = 0";

export function whyNotConsumed(db: Connection, part: RunCommit, n: number | null): Verdict | null {
  const ids = part.consumes;
  if (ids === undefined || ids.length === 0) return null;
  const isUnread = (id: string) => n !== null && db.get(IS_UNREAD, n, id) !== undefined;
  if (new Set(ids).size === ids.length && ids.every(isUnread)) return null;
  return { run: part.run, kind: "refused", why: "consumed" };
}

const FIND_KEY =
  "select runs.id as run, keys.digest from keys join runs on runs.n = keys.run where space = ? and keys.key = ?";

export function holderOf(db: Connection, space: string, key: string): KeyRow | null {
  const row = db.get(FIND_KEY, space, key);
  return row === undefined ? null : { run: row.run as string, digest: row.digest as string };
}

export function whyNotKeys(db: Connection, part: RunCommit): Verdict | null {
  const asked = new Set<string>();
  for (const { space, key, digest, from } of part.keys ?? []) {
    const name = JSON.stringify([space, key]);
    const holder = asked.has(name) ? { run: part.run, digest } : holderOf(db, space, key);
    if (holder !== null && (asked.has(name) || holder.run !== from)) {
      return { run: part.run, kind: "refused", why: "key", holder };
    }
    asked.add(name);
  }
  return null;
}

const READ_COUNTER = "select value from counters where key = ?";
const READ_HOLD = "select amount from holds where run = ? and key = ?";

export function counterValue(db: Connection, key: string): number {
  return (db.get(READ_COUNTER, key)?.value as number | undefined) ?? 0;
}

export function heldBy(db: Connection, n: number, key: string): number {
  return (db.get(READ_HOLD, n, key)?.amount as number | undefined) ?? 0;
}

/** Changes of one key are summed: each is judged on top of those before it (P24). */
export function whyNotCounters(db: Connection, part: RunCommit, n: number | null): Verdict | null {
  const sums = new Map<string, number>();
  const holds = new Map<string, number>();
  const current = (key: string) => sums.get(key) ?? counterValue(db, key);
  for (const [at, change] of (part.counters ?? []).entries()) {
    if (change.of !== part.run && !isOfRun(db, change)) continue;
    const key = counterKey(change);
    const value = current(key);
    const sum = counted(change, value);
    const held = holds.get(key) ?? (n === null ? 0 : heldBy(db, n, key));
    const hold = held + (change.held ? change.by : 0);
    const max = limitOf(change, current);
    if (isPast(change, sum, max) || hold < 0) return refusalOf(part, at, value, max);
    sums.set(key, sum);
    holds.set(key, hold);
  }
  return null;
}

const IS_THERE = "select 1 from runs where id = ?";

/** Whether there is somebody to count for. */
export function isOfRun(db: Connection, { of }: CounterChange): boolean {
  return of === undefined || db.get(IS_THERE, of) !== undefined;
}
