import type { StoredEntry } from "../../core/journal.ts";
import type { CounterRow, InboxRow, RunRow, StateRow, WaitQuery, WaitRow } from "../../core/store.ts";
import { endOfPrefix } from "../counters.ts";
import type { Connection } from "./connection.ts";
import type { SqlValue } from "./driver.ts";
import { dataOf, entryRow, RUN_COLUMNS, runRow, unreadOf, waitRow } from "./rows.ts";

const FIND_RUN = `select ${RUN_COLUMNS} from runs where id = ?`;
const FIND_NUMBER = "select n from runs where id = ?";

export function readRun(db: Connection, id: string): RunRow | null {
  const row = db.get(FIND_RUN, id);
  return row === undefined ? null : runRow(row);
}

export function numberOf(db: Connection, id: string): number | null {
  return (db.get(FIND_NUMBER, id)?.n as number | undefined) ?? null;
}

const READ_ENTRIES = `select seq, at, type, key, data, hash from journal
  where run = (select n from runs where id = ?) and seq >= ? order by seq limit ?`;

export function readJournal(db: Connection, id: string, from = 0, limit?: number): StoredEntry[] {
  return db.arrays(READ_ENTRIES, id, from, limitOf(limit)).map(entryRow);
}

export function readInbox(db: Connection, id: string): InboxRow[] {
  const n = numberOf(db, id);
  return n === null ? [] : unreadOf(db, n);
}

const WAITS = `select runs.id as run, runs.workflow, waits.key, waits.kind, waits.name, waits.due, waits.detail
  from waits join runs on runs.n = waits.run`;

export function listWaits(db: Connection, { run, kind, name, after, limit }: WaitQuery): WaitRow[] {
  const conditions = ["true"];
  const values: SqlValue[] = [];
  const add = (condition: string, ...given: SqlValue[]) => {
    conditions.push(condition);
    values.push(...given);
  };
  if (run !== undefined) add("runs.id = ?", run);
  if (kind !== undefined) add("kind = ?", kind);
  if (name !== undefined) add("waits.name = ?", name);
  if (after !== undefined) add("(waits.run, waits.key) > ((select n from runs where id = ?), ?)", after.run, after.key);
  // Repeats the condition of the index over what people are asked.
  if (kind === "approval" || kind === "decision") add("kind in ('approval', 'decision')");
  const where = conditions.join(" and ");
  return db
    .all(`${WAITS} where ${where} order by waits.run, waits.key limit ?`, ...values, limitOf(limit))
    .map(waitRow);
}

const STATE = "select key, data from state where run = (select n from runs where id = ?) order by key";

export function listStateRows(db: Connection, id: string): StateRow[] {
  return db.all(STATE, id).map((row) => ({ key: row.key as string, data: dataOf(row.data) as string | Uint8Array }));
}

const COUNTERS = `select key, value from counters where key >= ?1 and key < ?2 and substr(key, 1, length(?1)) = ?1 order by key`;

export function listCounters(db: Connection, prefix: string): CounterRow[] {
  return db
    .all(COUNTERS, prefix, endOfPrefix(prefix))
    .map((row) => ({ key: row.key as string, value: row.value as number }));
}

/** SQLite reads a negative limit as none. */
export function limitOf(limit: number | undefined): number {
  return limit === undefined || limit === Number.POSITIVE_INFINITY ? -1 : Math.max(0, Math.floor(limit));
}
