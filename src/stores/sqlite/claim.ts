// Claiming
// An idle worker asks every second, so the question is first put without a lock; only if there is an answer does a transaction follow,
// which asks again.
import type { Clock } from "../../base/clock.ts";
import type { ClaimedRun, ClaimRequest, Handle } from "../../core/store.ts";
import { isTerminal } from "../../core/transition.ts";
import { FINAL_FAILURE, PROGRESS_TYPES } from "../progress.ts";
import { versionLine } from "../version-line.ts";
import { isRegistered } from "./commit.ts";
import type { Connection, Row } from "./connection.ts";
import type { OwnedRuns } from "./owned-runs.ts";
import { entryRow, headOf, mailOf, READ_JOURNAL, RUN_COLUMNS, runRow } from "./rows.ts";

/** How many due runs one claim makes ready: a million timers of one moment must not hold the lock for seconds. */
const WAKE_AT_ONCE = 10_000;

const IS_ALARM = "wake_at is not null and owner is null and state <> 'parked'";
const IS_DUE = `${IS_ALARM} and wake_at <= ?`;
const NEXT_WAKE = `select wake_at from runs where ${IS_ALARM} order by wake_at limit 1`;
const ANY_DUE = `select 1 from runs where ${IS_DUE} limit 1`;
const WAKE_DUE = `update runs set ready_at = min(coalesce(ready_at, wake_at), wake_at), wake_at = null
  where n in (select n from runs where ${IS_DUE} order by wake_at limit ${WAKE_AT_ONCE})`;

const TYPES = PROGRESS_TYPES.filter((type) => type !== "step.failed")
  .map((type) => `'${type}'`)
  .join(", ");

// An outcome since the last claim (P28), in the words of `isProgress`.
const HAS_PROGRESSED = `exists (select 1 from journal where run = runs.n and seq >= claimed_head and (type in (${TYPES})
  or (type = 'step.failed' and (typeof(data) <> 'text' or instr(data, '${FINAL_FAILURE}') > 0))))`;

// The handles come as one JSON value, so that the statement is the same whatever a worker can do.
const READY = `with handles (workflow, line, patch) as materialized
    (select value ->> 0, value ->> 1, value ->> 2 from json_each(?1))
  select ${RUN_COLUMNS}, unread, claims > 0 and not ${HAS_PROGRESSED} as is_suspect from runs
  where ready_at is not null and owner is null and state not in ('succeeded', 'failed', 'cancelled')
    and exists (select 1 from handles
      where handles.workflow = runs.workflow and handles.line = runs.line and runs.patch <= handles.patch)
    and (claims > 0 and not ${HAS_PROGRESSED}) = ?2
  order by priority desc, ready_at, n limit ?3`;

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
    () => db.get(ANY_DUE, clock.now()) !== undefined || candidates(db, request, handles).length > 0,
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
  return candidates(db, request, handles).flatMap((row) => {
    if (!isReadable(row)) return [];
    const n = row.n as number;
    const claims = row.is_suspect === 1 ? (row.claims as number) + 1 : 1;
    db.run(CLAIM, request.worker, claims, headOf(db, n), n);
    return [{ n, run: load(db, n) }];
  });
}

/** By priority and age; at most one suspect among them, in the place it has by the same order (P28). */
function candidates(db: Connection, { limit, suspect }: ClaimRequest, handles: string): Row[] {
  const sound = db.all(READY, handles, 0, limit);
  const suspects = suspect ? db.all(READY, handles, 1, 1) : [];
  return [...sound, ...suspects].sort(byPriorityAndAge).slice(0, limit);
}

function byPriorityAndAge(a: Row, b: Row): number {
  const difference = (column: string) => (a[column] as number) - (b[column] as number);
  return -difference("priority") || difference("ready_at") || difference("n");
}

// One damaged row must not keep all others from being claimed; `inspect` names it.
function isReadable(row: Row): boolean {
  try {
    runRow(row);
    return true;
  } catch {
    return false;
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
