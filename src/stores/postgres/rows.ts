// Rows as PostgreSQL gives them, read into the shapes of the port.
import { PawlError } from "../../base/errors.ts";
import { isVersion } from "../../base/semver.ts";
import type { EntryType, StoredEntry } from "../../core/journal.ts";
import type { InboxRow, Mail, ParentLink, RunRow, WaitKind, WaitRow } from "../../core/store.ts";
import { RUN_STATES, type RunState } from "../../core/transition.ts";
import type { Row } from "./driver.ts";

export function runRow(row: Row): RunRow {
  if (!RUN_STATES.includes(row["state"] as RunState)) throw damaged(row, "state");
  if (!isVersion(row["version"])) throw damaged(row, "version");
  return {
    id: row["id"] as string,
    workflow: row["workflow"] as string,
    version: row["version"] as string,
    state: row["state"] as RunState,
    traceId: row["trace_id"] as string,
    key: row["key"] as string | null,
    tags: row["tags"] as string[],
    priority: row["priority"] as number,
    parent: parentOf(row),
    origin: row["origin"] as string | null,
    createdAt: row["created_at"] as number,
    endedAt: row["ended_at"] as number | null,
    deadline: row["deadline"] as number | null,
    head: row["head"] as number,
    headHash: row["head_hash"] as string,
    owner: row["owner"] as string | null,
    readyAt: row["ready_at"] as number | null,
    wakeAt: row["wake_at"] as number | null,
    wake: row["wake"] as number,
    cancel: row["cancel"] as string | null,
    claims: row["claims"] as number,
    stopReason: row["stop_reason"] as string | null,
    progress: row["progress"] as string | null,
    cost: row["cost"] as string | null,
    codec: row["codec"] as string,
    slot: (row["slot"] as string) || null,
    rate: (row["rate"] as string) || null,
  };
}

function parentOf(row: Row): ParentLink | null {
  if (row["parent"] === null) return null;
  if (row["parent_key"] === null || row["parent_generation"] === null) throw damaged(row, "parent");
  return {
    run: row["parent"] as string,
    key: row["parent_key"] as string,
    generation: row["parent_generation"] as number,
    detached: row["detached"] === true,
  };
}

function damaged(row: Row, column: string): PawlError {
  return new PawlError(
    "corrupted_journal",
    `The row of run ${row["id"]} is damaged: its column "${column}" holds ${JSON.stringify(row[column])}. Restore a backup, or see \`pawl doctor\`.`,
    { fields: { run: row["id"], column } },
  );
}

export function entryRow(row: Row): StoredEntry {
  return {
    seq: row["seq"] as number,
    at: row["at"] as number,
    type: row["type"] as EntryType,
    key: row["key"] as string | null,
    data: dataOf(row),
    hash: row["hash"] as string,
  };
}

/** Text or bytes: a value has one of the two columns. */
export function dataOf({ data, bytes }: Row): string | Uint8Array | null {
  if (bytes === null || bytes === undefined) return data as string | null;
  // A plain array: what is compared with it, and given on, is not to depend on the driver's kind of bytes.
  return new Uint8Array(bytes as Uint8Array);
}

export function inboxRow(row: Row): InboxRow {
  return {
    n: row["n"] as number,
    id: row["id"] as string,
    kind: row["kind"] as InboxRow["kind"],
    name: row["name"] as string,
    data: dataOf(row),
    at: row["at"] as number,
  };
}

export function waitRow(row: Row): WaitRow {
  return {
    run: row["run"] as string,
    workflow: row["workflow"] as string,
    key: row["key"] as string,
    kind: row["kind"] as WaitKind,
    name: row["name"] as string,
    due: row["due"] as number | null,
    detail: row["detail"] as string | null,
  };
}

/** What `mailRows` reads: a line for each unread message, or one without. Read by one statement, so in one snapshot (P18). */
export const mailQuery = (s: string, where: string): string => `
  select runs.n as number, runs.id as run, runs.wake, runs.cancel,
    (select coalesce(max(seq) + 1, 0) from ${s}.journal where journal.run = runs.n) as head,
    inbox.n, inbox.id, inbox.kind, inbox.name, inbox.data, inbox.bytes, inbox.at
  from ${s}.runs left join ${s}.inbox on inbox.run = runs.n and not consumed and runs.unread > 0
  where ${where} order by runs.n, inbox.n`;

export interface NumberedMail {
  readonly number: number;
  readonly mail: Mail;
}

export function mailRows(rows: readonly Row[]): NumberedMail[] {
  const found = new Map<number, NumberedMail & { readonly inbox: InboxRow[] }>();
  for (const row of rows) {
    const number = row["number"] as number;
    let one = found.get(number);
    if (one === undefined) {
      const inbox: InboxRow[] = [];
      const { run, head, wake, cancel } = row as unknown as Mail;
      one = { number, inbox, mail: { run, head, wake, cancel, inbox } };
      found.set(number, one);
    }
    if (row["id"] !== null) one.inbox.push(inboxRow(row));
  }
  return [...found.values()];
}
