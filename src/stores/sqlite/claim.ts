// Claiming
// An idle worker asks every second, so the question is first put without a lock; only if there is an answer does a transaction follow,
// which asks again.
import type { Clock } from "../../base/clock.ts";
import { hasCode } from "../../base/errors.ts";
import { LIMITS } from "../../core/limits.ts";
import type { ClaimedRun, ClaimRequest, Handle } from "../../core/store.ts";
import { isTerminal } from "../../core/transition.ts";
import type { OwnedRuns } from "../owned-runs.ts";
import { claimedLine, isClaimedSql } from "../version-line.ts";
import { isRegistered } from "./commit.ts";
import type { Connection, Row } from "./connection.ts";
import { type Line, type Lines, Room } from "./lines.ts";
import { entryRow, mailOf, READ_JOURNAL, RUN_COLUMNS, runRow } from "./rows.ts";
import { storageError } from "./storage-error.ts";

/** How many due runs one claim makes ready: a million timers of one moment must not hold the lock for seconds. */
const WAKE_AT_ONCE = 10_000;

/** How many of a line are read at once: there may be many lines, and a slot for few. */
const LINE_PAGE = 8;

const IS_ALARM = "wake_at is not null and owner is null and state <> 'parked'";
const IS_DUE = `${IS_ALARM} and wake_at <= ?`;
const NEXT_WAKE = `select wake_at from runs where ${IS_ALARM} order by wake_at limit 1`;
const ANY_DUE = `select 1 from runs where ${IS_DUE} limit 1`;
const WAKE_DUE = `update runs set ready_at = min(coalesce(ready_at, wake_at), wake_at), wake_at = null
  where n in (select n from runs where ${IS_DUE} order by wake_at limit ${WAKE_AT_ONCE})`;

// The handles come as one JSON value, so that the statement is the same whatever a worker can do. Each kind has an index of its own,
// so that looking for one never walks the other.
const readyWhere = (claims: string, slot: string) => `with handles (workflow, line, patch) as materialized
    (select value ->> 0, value ->> 1, value ->> 2 from json_each(?1))
  select n, priority, ready_at from runs
  where ready_at is not null and ${claims} and ${slot} and owner is null and state not in ('succeeded', 'failed', 'cancelled')
    and exists (select 1 from handles
      where handles.workflow = runs.workflow and ${isClaimedSql("handles")})
  order by priority desc, ready_at, n limit ?2 offset ?3`;
const IS_SOUND = `claims < ${LIMITS.deathsAmongOthers}`;
const IS_SUSPECT = `claims >= ${LIMITS.deathsAmongOthers}`;
const NO_LINE = "slot = ''";
const LINE = "slot = ?4 and rate = ?5 and slot <> ''";
const READY = { sound: readyWhere(IS_SOUND, NO_LINE), suspect: readyWhere(IS_SUSPECT, NO_LINE) };
const IN_LINE = { sound: readyWhere(IS_SOUND, LINE), suspect: readyWhere(IS_SUSPECT, LINE) };

const CLAIM = `update runs set owner = ?, state = 'running', ready_at = null, wake_at = null, claims = ?, claimed_head = ?,
  rate = '' where n = ?`;

export async function claim(
  db: Connection,
  owned: OwnedRuns,
  lines: Lines,
  request: ClaimRequest,
  clock: Clock,
): Promise<ClaimedRun[]> {
  if (request.limit < 1) return [];
  const handles = handlesText(request.handles);
  const isAnyThere = await db.read(() => {
    const now = clock.now();
    if (db.get(ANY_DUE, now) !== undefined || hasReady(db, request, handles)) return true;
    if (sourcesOf(db, request, handles, lines.open(request.handles, now)).length > 0) return true;
    lines.moveOn();
    return false;
  });
  if (!isAnyThere) return [];
  const claimed = await db.write(() => claimNow(db, lines, request, handles, clock.now()));
  for (const { n, run } of claimed)
    owned.remember(run.run, { n, owner: request.worker, head: run.head, isBare: false });
  return claimed.map(({ run }) => run);
}

function hasReady(db: Connection, { suspect }: ClaimRequest, handles: string): boolean {
  if (db.get(READY.sound, handles, 1, 0) !== undefined) return true;
  return suspect && db.get(READY.suspect, handles, 1, 0) !== undefined;
}

export function nextWake(db: Connection, lines: Lines, now: number): number | null {
  const alarm = (db.get(NEXT_WAKE)?.wake_at as number | undefined) ?? null;
  const start = lines.nextStart(now);
  return alarm === null || start === null ? (alarm ?? start) : Math.min(alarm, start);
}

interface Claimed {
  readonly n: number;
  readonly run: ClaimedRun;
}

function claimNow(db: Connection, lines: Lines, request: ClaimRequest, handles: string, now: number): Claimed[] {
  if (!isRegistered(db, request.worker)) return [];
  db.run(WAKE_DUE, now);
  const sources = sourcesOf(db, request, handles, [null, ...lines.open(request.handles, now)]);
  lines.moveOn();
  return candidates(db, request, sources, new Room(db, request.handles, now)).map(({ n, run }) => {
    const claims = run.row.claims + 1;
    db.run(CLAIM, request.worker, claims, run.head, n);
    const times = { readyAt: null, wakeAt: null };
    const row = { ...run.row, ...times, owner: request.worker, state: "running" as const, claims, rate: null };
    return { n, run: { ...run, row } };
  });
}

/** Ready runs of one kind, in order, read as far as they are wanted. */
class Source {
  readonly line: Line | null;
  readonly isSuspect: boolean;
  readonly #read: (offset: number) => Row[];
  readonly #pageSize: number;
  #page: readonly Row[];
  #offset = 0;
  #at = 0;

  constructor(line: Line | null, isSuspect: boolean, pageSize: number, read: (offset: number) => Row[]) {
    this.line = line;
    this.isSuspect = isSuspect;
    this.#pageSize = pageSize;
    this.#read = read;
    this.#page = read(0);
  }

  get first(): Row | undefined {
    return this.#page[this.#at];
  }

  next(): void {
    this.#at += 1;
    if (this.#at < this.#page.length || this.#page.length < this.#pageSize) return;
    this.#offset += this.#pageSize;
    this.#page = this.#read(this.#offset);
    this.#at = 0;
  }
}

/** Those that have somebody to give; `null` is for all runs that stand in no line. */
function sourcesOf(
  db: Connection,
  { limit, suspect }: ClaimRequest,
  handles: string,
  lines: readonly (Line | null)[],
): Source[] {
  const found: Source[] = [];
  for (const line of lines) {
    const { sound, suspect: suspects } = line === null ? READY : IN_LINE;
    const where = line === null ? [] : [line.slot, line.rate];
    const page = (sql: string, size: number) => (offset: number) => db.all(sql, handles, size, offset, ...where);
    const size = line === null ? limit : Math.min(limit, LINE_PAGE);
    found.push(new Source(line, false, size, page(sound, size)));
    if (suspect) found.push(new Source(line, true, 1, page(suspects, 1)));
  }
  return found.filter(({ first }) => first !== undefined);
}

/**
 * By priority and age; at most one suspect among them, in the place it has by the same order (P28), and no more of a line than its slot and
 * its rate let in (I18). Damaged ones must not take the places of others (B69); `inspect` names them.
 */
function candidates(db: Connection, { limit }: ClaimRequest, given: readonly Source[], room: Room): Claimed[] {
  const found: Claimed[] = [];
  let sources = [...given];
  while (found.length < limit) {
    sources = sources.filter(({ first, line }) => first !== undefined && (line === null || room.of(line) > 0));
    const source = sources.reduce<Source | null>(earlier, null);
    if (source === null) break;
    const run = candidate(db, source.first as Row);
    source.next();
    if (run === null) continue;
    found.push(run);
    if (source.line !== null) room.take(source.line, run.n);
    if (source.isSuspect) sources = sources.filter(({ isSuspect }) => !isSuspect);
  }
  return found;
}

function earlier(a: Source | null, b: Source): Source {
  return a === null || byPriorityAndAge(b.first as Row, a.first as Row) < 0 ? b : a;
}

function byPriorityAndAge(a: Row, b: Row): number {
  const difference = (column: string) => (a[column] as number) - (b[column] as number);
  return -difference("priority") || difference("ready_at") || difference("n");
}

/** `null` for one that cannot be read. */
function candidate(db: Connection, place: Row): Claimed | null {
  const n = place.n as number;
  if (!Number.isSafeInteger(n)) return null;
  try {
    return { n, run: load(db, n) };
  } catch (error) {
    if (hasCode(storageError(error, db.path), "corrupted_journal")) return null;
    throw error;
  }
}

function handlesText(handles: readonly Handle[]): string {
  return JSON.stringify(
    handles.map((handle) => {
      const { line, patch } = claimedLine(handle);
      return [handle.workflow, line, patch];
    }),
  );
}

const TAKE = "update runs set owner = ?, ready_at = null, wake_at = null where n = ?";
const FIND = `select ${RUN_COLUMNS}, unread from runs where id = ?`;

/** Loads a run of this worker, or takes one that nobody owns without counting it as a claim: no body will run (P19). */
export async function take(
  db: Connection,
  owned: OwnedRuns,
  worker: string,
  id: string,
  isSlotless = false,
): Promise<ClaimedRun | null> {
  const taken = await db.write(() => takeNow(db, worker, id, isSlotless));
  if (taken !== null) owned.remember(id, { n: taken.n, owner: worker, head: taken.run.head, isBare: false });
  return taken?.run ?? null;
}

function takeNow(db: Connection, worker: string, id: string, isSlotless: boolean): Claimed | null {
  const row = db.get(FIND, id);
  if (row === undefined || !isRegistered(db, worker)) return null;
  const { owner, state, slot, cancel } = runRow(row);
  if (isTerminal(state) || (owner !== null && owner !== worker)) return null;
  const isInLine = slot !== null && cancel === null && state !== "accepted";
  if (owner === null && isInLine && !isSlotless) return null;
  const n = row.n as number;
  if (owner === null) db.run(TAKE, worker, n);
  return { n, run: load(db, n) };
}

/** The run as it is now, with its whole journal and its mail, in the transaction that took it (P18). */
function load(db: Connection, n: number): ClaimedRun {
  const row = db.get(`select ${RUN_COLUMNS}, unread from runs where n = ?`, n) as Row;
  return { ...mailOf(db, row), row: runRow(row), journal: db.arrays(READ_JOURNAL, n).map(entryRow) };
}
