// Claiming
// An idle worker asks every second, so the question is first put without a lock; only if there is an answer does a transaction follow,
// which asks again.
import type { Clock } from "../../base/clock.ts";
import { hasCode } from "../../base/errors.ts";
import { LIMITS } from "../../core/limits.ts";
import type { ClaimedRun, ClaimRequest, Handle } from "../../core/store.ts";
import { isTerminal } from "../../core/transition.ts";
import type { OwnedRuns } from "../owned-runs.ts";
import { versionLine } from "../version-line.ts";
import { isRegistered } from "./commit.ts";
import type { Connection, Row } from "./connection.ts";
import { entryRow, mailOf, READ_JOURNAL, RUN_COLUMNS, runRow } from "./rows.ts";
import { storageError } from "./storage-error.ts";

/** How many due runs one claim makes ready: a million timers of one moment must not hold the lock for seconds. */
const WAKE_AT_ONCE = 10_000;

const IS_ALARM = "wake_at is not null and owner is null and state <> 'parked'";
const IS_DUE = `${IS_ALARM} and wake_at <= ?`;
const NEXT_WAKE = `select wake_at from runs where ${IS_ALARM} order by wake_at limit 1`;
const ANY_DUE = `select 1 from runs where ${IS_DUE} limit 1`;
const WAKE_DUE = `update runs set ready_at = min(coalesce(ready_at, wake_at), wake_at), wake_at = null
  where n in (select n from runs where ${IS_DUE} order by wake_at limit ${WAKE_AT_ONCE})`;

// The handles come as one JSON value, so that the statement is the same whatever a worker can do. Each kind has an index of its own,
// so that looking for one never walks the other.
const readyWhere = (claims: string) => `with handles (workflow, line, patch) as materialized
    (select value ->> 0, value ->> 1, value ->> 2 from json_each(?1))
  select n, priority, ready_at from runs
  where ready_at is not null and ${claims} and owner is null and state not in ('succeeded', 'failed', 'cancelled')
    and exists (select 1 from handles
      where handles.workflow = runs.workflow and handles.line = runs.line and runs.patch <= handles.patch)
  order by priority desc, ready_at, n limit ?2 offset ?3`;
const SOUND = readyWhere(`claims < ${LIMITS.deathsAmongOthers}`);
const SUSPECT = readyWhere(`claims >= ${LIMITS.deathsAmongOthers}`);

const CLAIM = `update runs set owner = ?, state = 'running', ready_at = null, wake_at = null, claims = ?, claimed_head = ?
  where n = ?`;

export async function claim(
  db: Connection,
  owned: OwnedRuns,
  request: ClaimRequest,
  clock: Clock,
): Promise<ClaimedRun[]> {
  if (request.limit < 1) return [];
  const handles = handlesText(request.handles);
  const isAnyThere = await db.read(
    () => db.get(ANY_DUE, clock.now()) !== undefined || hasCandidate(db, request, handles),
  );
  if (!isAnyThere) return [];
  const claimed = await db.write(() => claimNow(db, request, handles, clock.now()));
  for (const { n, run } of claimed)
    owned.remember(run.run, { n, owner: request.worker, head: run.head, isBare: false });
  return claimed.map(({ run }) => run);
}

export function nextWake(db: Connection): number | null {
  return (db.get(NEXT_WAKE)?.wake_at as number | undefined) ?? null;
}

interface Claimed {
  readonly n: number;
  readonly run: ClaimedRun;
}

function claimNow(db: Connection, request: ClaimRequest, handles: string, now: number): Claimed[] {
  if (!isRegistered(db, request.worker)) return [];
  db.run(WAKE_DUE, now);
  return candidates(db, request, handles).map(({ n, run }) => {
    const claims = run.row.claims + 1;
    db.run(CLAIM, request.worker, claims, run.head, n);
    const row = { ...run.row, owner: request.worker, state: "running" as const, readyAt: null, wakeAt: null, claims };
    return { n, run: { ...run, row } };
  });
}

function hasCandidate(db: Connection, { suspect }: ClaimRequest, handles: string): boolean {
  return db.get(SOUND, handles, 1, 0) !== undefined || (suspect && db.get(SUSPECT, handles, 1, 0) !== undefined);
}

interface Candidate extends Claimed {
  readonly place: Row;
}

/** By priority and age; at most one suspect among them, in the place it has by the same order (P28). */
function candidates(db: Connection, { limit, suspect }: ClaimRequest, handles: string): Candidate[] {
  const sound = readable(db, SOUND, handles, limit);
  const suspects = suspect ? readable(db, SUSPECT, handles, 1) : [];
  return [...sound, ...suspects].sort((a, b) => byPriorityAndAge(a.place, b.place)).slice(0, limit);
}

function byPriorityAndAge(a: Row, b: Row): number {
  const difference = (column: string) => (a[column] as number) - (b[column] as number);
  return -difference("priority") || difference("ready_at") || difference("n");
}

/** The first `limit` that can be read: damaged ones must not take the places of others (B69). `inspect` names them. */
function readable(db: Connection, sql: string, handles: string, limit: number): Candidate[] {
  const found: Candidate[] = [];
  for (let offset = 0; found.length < limit; offset += limit) {
    const places = db.all(sql, handles, limit, offset);
    found.push(...places.flatMap((place) => candidate(db, place)));
    if (places.length < limit) break;
  }
  return found.slice(0, limit);
}

function candidate(db: Connection, place: Row): Candidate[] {
  const n = place.n as number;
  if (!Number.isSafeInteger(n)) return [];
  try {
    return [{ n, run: load(db, n), place }];
  } catch (error) {
    if (hasCode(storageError(error, db.path), "corrupted_journal")) return [];
    throw error;
  }
}

function handlesText(handles: readonly Handle[]): string {
  return JSON.stringify(
    handles.map(({ workflow, version }) => {
      const { line, patch } = versionLine(version);
      return [workflow, line, patch];
    }),
  );
}

const TAKE = "update runs set owner = ?, ready_at = null, wake_at = null where n = ?";
const FIND = `select ${RUN_COLUMNS}, unread from runs where id = ?`;

/** Loads a run of this worker, or takes one that nobody owns without counting it as a claim: no body will run (P19). */
export async function take(db: Connection, owned: OwnedRuns, worker: string, id: string): Promise<ClaimedRun | null> {
  const taken = await db.write(() => takeNow(db, worker, id));
  if (taken !== null) owned.remember(id, { n: taken.n, owner: worker, head: taken.run.head, isBare: false });
  return taken?.run ?? null;
}

function takeNow(db: Connection, worker: string, id: string): Claimed | null {
  const row = db.get(FIND, id);
  if (row === undefined || !isRegistered(db, worker)) return null;
  const { owner, state } = runRow(row);
  if (isTerminal(state) || (owner !== null && owner !== worker)) return null;
  const n = row.n as number;
  if (owner === null) db.run(TAKE, worker, n);
  return { n, run: load(db, n) };
}

/** The run as it is now, with its whole journal and its mail, in the transaction that took it (P18). */
function load(db: Connection, n: number): ClaimedRun {
  const row = db.get(`select ${RUN_COLUMNS}, unread from runs where n = ?`, n) as Row;
  return { ...mailOf(db, row), row: runRow(row), journal: db.arrays(READ_JOURNAL, n).map(entryRow) };
}
