// Rows as SQLite gives them, read into the shapes of the port. A value that Pawl cannot have written is named, never passed on.
import { PawlError } from "../../base/errors.ts";
import { isVersion } from "../../base/semver.ts";
import type { EntryType, StoredEntry } from "../../core/journal.ts";
import type { Handle, InboxRow, Mail, ParentLink, RunRow, WaitKind, WaitRow } from "../../core/store.ts";
import { RUN_STATES, type RunState } from "../../core/transition.ts";
import type { Connection, Row } from "./connection.ts";
import type { SqlValue } from "./driver.ts";

type Data = string | Uint8Array | null;

export const RUN_COLUMNS = `n, id, workflow, version, state, trace_id, key, tags, priority, parent, parent_key,
  parent_generation, detached, origin, created_at, ended_at, deadline, head, head_hash, owner, ready_at, wake_at, wake, cancel,
  claims, claimed_head, stop_reason, progress, cost, codec, slot, rate`;

/** A row that no Pawl can have written is named with its column. */
export function runRow(row: Row): RunRow {
  for (const column of NUMBERS)
    if (typeof row[column] === "number" && !Number.isFinite(row[column])) throw damaged(row, column);
  if (!isVersion(row.version)) throw damaged(row, "version");
  return {
    id: row.id as string,
    workflow: row.workflow as string,
    version: row.version as string,
    state: stateOf(row),
    traceId: row.trace_id as string,
    key: row.key as string | null,
    tags: tagsOf(row),
    priority: row.priority as number,
    parent: parentOf(row),
    origin: row.origin as string | null,
    createdAt: row.created_at as number,
    endedAt: row.ended_at as number | null,
    deadline: row.deadline as number | null,
    head: row.head as number,
    headHash: row.head_hash as string,
    owner: row.owner as string | null,
    readyAt: row.ready_at as number | null,
    wakeAt: row.wake_at as number | null,
    wake: row.wake as number,
    cancel: row.cancel as string | null,
    claims: row.claims as number,
    stopReason: row.stop_reason as string | null,
    progress: row.progress as string | null,
    cost: row.cost as string | null,
    codec: row.codec as string,
    slot: (row.slot as string) || null,
    rate: (row.rate as string) || null,
  };
}

// One by one: this is read for every run that is claimed or listed.
const NUMBERS = [
  "n",
  "priority",
  "parent_generation",
  "created_at",
  "ended_at",
  "deadline",
  "head",
  "ready_at",
  "wake_at",
  "wake",
  "claims",
  "claimed_head",
];

function stateOf(row: Row): RunState {
  const state = row.state as RunState;
  if (!RUN_STATES.includes(state)) throw damaged(row, "state");
  return state;
}

function tagsOf(row: Row): string[] {
  const tags = readTags(row.tags);
  if (tags === null) throw damaged(row, "tags");
  return tags;
}

/** `null` for what is no list of tags. */
export function readTags(text: SqlValue | undefined): string[] | null {
  if (text === "[]") return [];
  const tags = readJson(text);
  return Array.isArray(tags) && tags.every((tag) => typeof tag === "string") ? tags : null;
}

/** What a worker said it can run; `null` if that is damaged. */
export function readHandles(text: SqlValue | undefined): Handle[] | null {
  const handles = readJson(text);
  return Array.isArray(handles) && handles.every(isHandle) ? handles : null;
}

function isHandle(value: unknown): value is Handle {
  const { workflow, version } = (value ?? {}) as Partial<Handle>;
  return typeof workflow === "string" && isVersion(version);
}

function readJson(text: SqlValue | undefined): unknown {
  try {
    return JSON.parse(text as string);
  } catch {
    return undefined;
  }
}

function parentOf(row: Row): ParentLink | null {
  if (row.parent === null) return null;
  if (row.parent_key === null || row.parent_generation === null) throw damaged(row, "parent");
  return {
    run: row.parent as string,
    key: row.parent_key as string,
    generation: row.parent_generation as number,
    detached: row.detached === 1,
  };
}

function damaged(row: Row, column: string): PawlError {
  return new PawlError(
    "corrupted_journal",
    `The row of run ${row.id} is damaged: its column "${column}" holds ${shown(row[column])}. Restore a backup, or see \`pawl doctor\`.`,
    { fields: { run: row.id, column } },
  );
}

function shown(value: SqlValue | undefined): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 60)) : "a number that cannot be its own";
}

export const READ_JOURNAL = "select seq, at, type, key, data, hash from journal where run = ? order by seq";

/** An entry from the columns of READ_JOURNAL. */
export function entryRow([seq, at, type, key, data, hash]: readonly SqlValue[]): StoredEntry {
  return {
    seq: seq as number,
    at: at as number,
    type: type as EntryType,
    key: key as string | null,
    data: dataOf(data),
    hash: hash as string,
  };
}

/** The column takes anything. What is neither text nor bytes was not written by Pawl: as text, it fits no checksum and no envelope. */
export function dataOf(value: SqlValue | undefined): Data {
  return typeof value === "number" || typeof value === "bigint" ? String(value) : (value ?? null);
}

const READ_UNREAD = "select n, id, kind, name, data, at from inbox where run = ? and consumed = 0 order by n";

export function unreadOf(db: Connection, n: number): InboxRow[] {
  return db.all(READ_UNREAD, n).map((row) => ({
    n: row.n as number,
    id: row.id as string,
    kind: row.kind as InboxRow["kind"],
    name: row.name as string,
    data: dataOf(row.data),
    at: row.at as number,
  }));
}

/** The columns that `mailOf` reads. */
export const MAIL_COLUMNS = "n, id, wake, cancel, unread";

/** What an owner must know of a run. Must run inside one transaction (P18). */
export function mailOf(db: Connection, row: Row): Mail {
  const n = row.n as number;
  const head = headOf(db, n);
  if (!Number.isSafeInteger(n) || !Number.isSafeInteger(head)) throw unnumbered(row);
  return {
    run: row.id as string,
    head,
    wake: row.wake as number,
    cancel: row.cancel as string | null,
    inbox: row.unread === 0 ? [] : unreadOf(db, n),
  };
}

function unnumbered(row: Row): PawlError {
  return new PawlError(
    "corrupted_journal",
    `The journal of run ${row.id} cannot be told from its row, or not where it ends: a position in it is damaged. Restore a backup, or see \`pawl doctor\`.`,
    { fields: { run: row.id } },
  );
}

/** Next position of a run's journal: one look at the end of its part of the tree. */
export function headOf(db: Connection, n: number): number {
  return (db.get("select max(seq) + 1 as head from journal where run = ?", n)?.head as number | null) ?? 0;
}

export function waitRow(row: Row): WaitRow {
  return {
    run: row.run as string,
    workflow: row.workflow as string,
    key: row.key as string,
    kind: row.kind as WaitKind,
    name: row.name as string,
    due: row.due as number | null,
    detail: row.detail as string | null,
  };
}
