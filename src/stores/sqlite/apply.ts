// Writing a run's part, once its conditions hold.
import { PawlError } from "../../base/errors.ts";
import { counterKey, OF_RUNS } from "../../core/counters.ts";
import type { StoredEntry } from "../../core/journal.ts";
import type { CounterChange, NewChild, NewRun, RowPatch, RunCommit, WaitChange } from "../../core/store.ts";
import { counted } from "../counters.ts";
import { versionLine } from "../version-line.ts";
import { counterValue, heldBy, isOfRun } from "./conditions.ts";
import type { Connection } from "./connection.ts";
import { deliver } from "./deliver.ts";
import type { SqlValue } from "./driver.ts";
import type { EntryRows } from "./entry-rows.ts";

const MARK_CANCELLING = "update runs set cancelling = 1 where n = ?";

export function appendEntries(db: Connection, rows: EntryRows, n: number, entries: readonly StoredEntry[]): void {
  for (const entry of entries) {
    rows.add(n, entry);
    if (entry.type === "run.cancelling") db.run(MARK_CANCELLING, n);
  }
}

const INSERT_RUN = `insert into runs (id, workflow, version, line, patch, state, trace_id, key, tags, priority, parent, parent_key,
    parent_generation, detached, origin, created_at, deadline, head, head_hash, owner, ready_at, wake_at, claims, claimed_head, codec, slot,
    rate)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const INSERT_TAG = "insert or ignore into tags (tag, run) values (?, ?)";

/** Adds a run with its first entries; returns its number. One that is due later only wakes then. */
export function insertRun(
  db: Connection,
  rows: EntryRows,
  id: string,
  create: NewRun,
  owner: string | null,
  entries: readonly StoredEntry[],
  now: number,
): number {
  const { line, patch } = versionLine(create.version);
  const { parent, readyAt } = create;
  const isClaimed = create.claimed && owner !== null;
  const isDue = readyAt <= now;
  db.fault("statement");
  // The part's texts were checked with the whole commit.
  const inserted = db
    .statement(INSERT_RUN)
    .run(
      id,
      create.workflow,
      create.version,
      line,
      patch,
      isClaimed ? "running" : "accepted",
      create.traceId,
      create.key,
      create.tags.length === 0 ? "[]" : JSON.stringify(create.tags),
      create.priority,
      parent?.run ?? null,
      parent?.key ?? null,
      parent?.generation ?? null,
      parent === null ? null : Number(parent.detached),
      create.origin,
      now,
      create.deadline,
      entries.length,
      entries.at(-1)?.hash ?? "",
      isClaimed ? owner : null,
      !isClaimed && isDue ? readyAt : null,
      !isClaimed && !isDue ? readyAt : null,
      isClaimed ? 1 : 0,
      entries.length,
      create.codec,
      create.needs?.slot ?? "",
      create.needs?.rate ?? "",
    );
  const n = Number(inserted.lastInsertRowid);
  if (!Number.isSafeInteger(n)) throw numbersDamaged(id);
  appendEntries(db, rows, n, entries);
  for (const tag of create.tags) db.run(INSERT_TAG, tag, n);
  return n;
}

// SQLite counts on from the highest number there is.
function numbersDamaged(run: string): PawlError {
  return new PawlError(
    "corrupted_journal",
    `Run ${run} cannot be added: a row of the table "runs" holds a number in column "n" that Pawl never gives. Find it with \`pawl doctor\`, or restore a backup.`,
    { fields: { run, column: "n" } },
  );
}

const IS_THERE = "select 1 from runs where id = ?";

/** Creates a child unless it exists; returns its number if it was created (a pass that is repeated asks again). */
export function insertChild(
  db: Connection,
  rows: EntryRows,
  child: NewChild,
  owner: string | null,
  now: number,
): number | null {
  if (db.get(IS_THERE, child.run) !== undefined) return null;
  return insertRun(db, rows, child.run, child.create, owner, [child.entry], now);
}

const CONSUME = "update inbox set consumed = 1, data = null where run = ? and id = ?";
const COUNT_READ = "update runs set unread = max(unread - ?, 0) where n = ?";

// The row stays for its id alone until the run ends (P5); what it carried is in the journal now.
export function consume(db: Connection, n: number, ids: readonly string[] | undefined): void {
  if (ids === undefined || ids.length === 0) return;
  for (const id of ids) db.run(CONSUME, n, id);
  db.run(COUNT_READ, ids.length, n);
}

const SET_KEY = "insert or replace into keys (space, key, run, digest) values (?, ?, ?, ?)";
const SET_STATE = "insert or replace into state (run, key, data) values (?, ?, ?)";

// One for all: most parts have none of these.
const NONE: readonly never[] = [];

/** Everything of a part that stands beside the journal, the run's own row and the messages to others. */
export function applyTables(db: Connection, n: number, part: RunCommit): void {
  const { keys = NONE, counters = NONE, waits = NONE, state = NONE } = part;
  for (const { space, key, digest } of keys) db.run(SET_KEY, space, key, n, digest);
  for (const change of counters) count(db, n, change);
  for (const change of waits) changeWaits(db, n, change);
  for (const { key, data } of state) db.run(SET_STATE, n, key, data);
}

const OPEN_WAIT = "insert or replace into waits (run, key, kind, name, due, detail) values (?, ?, ?, ?, ?, ?)";
const CLOSE_WAIT = "delete from waits where run = ? and key = ?";
const CLOSE_WAITS = "delete from waits where run = ?";

function changeWaits(db: Connection, n: number, change: WaitChange): void {
  if ("closeAll" in change) db.run(CLOSE_WAITS, n);
  else if ("close" in change) db.run(CLOSE_WAIT, n, change.close);
  else {
    const { key, kind, name, due, detail } = change.open;
    db.run(OPEN_WAIT, n, key, kind, name, due, detail);
  }
}

const SET_COUNTER = "insert or replace into counters (key, value) values (?, ?)";
const DELETE_COUNTER = "delete from counters where key = ?";
const SET_HOLD = "insert or replace into holds (run, key, amount) values (?, ?, ?)";
const DELETE_HOLD = "delete from holds where run = ? and key = ?";

function count(db: Connection, n: number, change: CounterChange): void {
  if (!isOfRun(db, change)) return;
  const key = counterKey(change);
  setCounter(db, key, counted(change, counterValue(db, key)));
  if (!change.held) return;
  const amount = heldBy(db, n, key) + change.by;
  if (amount > 0) db.run(SET_HOLD, n, key, amount);
  else db.run(DELETE_HOLD, n, key);
}

function setCounter(db: Connection, key: string, value: number): void {
  if (value > 0) return void db.run(SET_COUNTER, key, value);
  // One of a run that is held is deleted only as nothing: by that it is told from a purge (schema 6).
  if (key.startsWith(OF_RUNS)) db.run(SET_COUNTER, key, 0);
  db.run(DELETE_COUNTER, key);
}

// The order here is the order of the values; a column that a patch does not name keeps its value.
const PATCHABLE = {
  state: "state",
  head: "head",
  headHash: "head_hash",
  readyAt: "ready_at",
  wakeAt: "wake_at",
  claims: "claims",
  endedAt: "ended_at",
  stopReason: "stop_reason",
  progress: "progress",
  cost: "cost",
  deadline: "deadline",
} as const;

const FIELDS = Object.entries(PATCHABLE) as [keyof typeof PATCHABLE, string][];

/** What an end does to the row by itself: nobody owns it, nothing wakes it. */
const END_OF_ROW = "owner = null, ready_at = null, wake_at = null, unread = 0";

// It has no times (see `isBare`), and nothing was ever sent to it: its owner is all there is to clear.
const END_UNTOUCHED = `update runs set state = ?, head = ?, head_hash = ?, claims = ?, ended_at = ?, stop_reason = ?, owner = null
  where n = ? and wake = 0 and cancel is null`;

/** Writes the end of an owned run that nothing has reached from outside, in one statement. False: something has, or it is no plain end. */
export function endUntouched(db: Connection, n: number, patch: RowPatch): boolean {
  const { state, head, headHash, claims, endedAt, stopReason, version, progress, cost, deadline } = patch;
  if (state === undefined || head === undefined || headHash === undefined || claims === undefined) return false;
  if (endedAt === undefined || stopReason === undefined) return false;
  if ([version, progress, cost, deadline].some((value) => value !== undefined)) return false;
  db.fault("statement");
  return db.statement(END_UNTOUCHED).run(state, head, headHash, claims, endedAt, stopReason, n).changes === 1;
}

/** Writes the columns that a patch names; the statement of each combination is prepared once. */
export function patchRow(db: Connection, n: number, given: RowPatch, now: number): void {
  const patch: RowPatch = given.ended === true ? { endedAt: now, ...given } : given;
  const columns: string[] = [];
  const values: SqlValue[] = [];
  for (const [field, column] of FIELDS) {
    const value = patch[field];
    if (value === undefined || (patch.ended === true && (field === "readyAt" || field === "wakeAt"))) continue;
    columns.push(`${column} = ?`);
    values.push(value);
  }
  if (patch.version !== undefined) {
    const { line, patch: number } = versionLine(patch.version);
    columns.push("version = ?, line = ?, patch = ?");
    values.push(patch.version, line, number);
  }
  if (patch.needs !== undefined) {
    columns.push("slot = ?, rate = ?");
    values.push(patch.needs.slot, patch.needs.rate ?? "");
  }
  if (patch.ended === true) columns.push(END_OF_ROW);
  else if (patch.release === true) columns.push("owner = null");
  if (columns.length > 0) db.run(`update runs set ${columns.join(", ")} where n = ?`, ...values, n);
}

const READ_HOLDS = "select key, amount from holds where run = ?";
const DELETE_HOLDS = "delete from holds where run = ?";
const DELETE_INBOX = "delete from inbox where run = ?";

/** Takes away what only an unfinished run has: its waits, its mail, its place in counters (I18). */
export function endRun(db: Connection, n: number, mayHaveMail: boolean): void {
  db.run(CLOSE_WAITS, n);
  if (mayHaveMail) db.run(DELETE_INBOX, n);
  const holds = db.all(READ_HOLDS, n);
  for (const { key, amount } of holds) {
    setCounter(db, key as string, counterValue(db, key as string) - (amount as number));
  }
  if (holds.length > 0) db.run(DELETE_HOLDS, n);
}

/** Messages come last, so that a run which lets go in this commit is found free by its own (P24). */
export function sendMessages(db: Connection, part: RunCommit, now: number): void {
  for (const message of part.messages ?? NONE) deliver(db, message, now);
}
