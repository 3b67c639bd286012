// The memory store's tables
// Rows and entries are frozen when they come in and replaced as a whole, so that no caller holds what the store may change.
import type { StoredEntry } from "../../core/journal.ts";
import type { InboxRow, KeyRow, NewRun, NewWorker, RowPatch, RunRow, StateRow, WaitRow } from "../../core/store.ts";
import type { StreamChunk } from "../../core/streams.ts";
import { isTerminal } from "../../core/transition.ts";
import { copyOperators, emptyOperators, type Operators } from "./operators.ts";

export interface MemoryRun {
  /** Order of creation. */
  readonly n: number;
  row: RunRow;
  readonly journal: StoredEntry[];
  readonly inbox: Letter[];
  readonly waits: Map<string, WaitRow>;
  readonly state: Map<string, StateRow>;
  /** What the run holds of each counter, given back when it ends. */
  readonly holds: Map<string, number>;
  /** Length of the journal at the last claim: outcomes after it are progress (P28). */
  claimedHead: number;
  /** Whether `run.cancelling` is recorded: a cancel is news until then. */
  isCancelling: boolean;
}

/** An inbox row. A consumed one stays until the run ends, so that its id is still known (P5). */
export interface Letter {
  readonly row: InboxRow;
  isConsumed: boolean;
}

export interface MemoryWorker {
  readonly worker: NewWorker;
  readonly startedAt: number;
  renewedAt: number;
}

/** A run of a rate has begun. */
export interface Start {
  readonly at: number;
  readonly until: number;
}

export interface Tables {
  readonly runs: Map<string, MemoryRun>;
  readonly workers: Map<string, MemoryWorker>;
  /** By space, then key. */
  readonly keys: Map<string, Map<string, KeyRow>>;
  readonly counters: Map<string, number>;
  /** Of each rate: its last starts. */
  readonly starts: Map<string, readonly Start[]>;
  readonly streams: Streams;
  readonly operators: Operators;
  created: number;
}

/** Chunks by their run, the entry that began their attempt, and their number. */
export type Streams = Map<string, Map<string, Map<number, StreamChunk>>>;

export function emptyTables(): Tables {
  return {
    runs: new Map(),
    workers: new Map(),
    keys: new Map(),
    counters: new Map(),
    starts: new Map(),
    streams: new Map(),
    operators: emptyOperators(),
    created: 0,
  };
}

/** What the tables hold now, at the price of what may still change: journals only grow, so of them a length is enough. */
export function saveTables(tables: Tables): () => Tables {
  const runs = [...tables.runs.values()].map((run) => ({ ...copyRun(run), length: run.journal.length }));
  const rest = copyRest(tables);
  const workers = copyWorkers(tables);
  return () => ({
    runs: new Map(
      runs.map(({ length, ...run }) => [run.row.id, { ...copyRun(run), journal: run.journal.slice(0, length) }]),
    ),
    ...copyRest(rest),
    workers: copyWorkers({ workers }),
  });
}

function copyRun(run: MemoryRun): MemoryRun {
  return {
    ...run,
    inbox: run.inbox.map((letter) => ({ ...letter })),
    waits: new Map(run.waits),
    state: new Map(run.state),
    holds: new Map(run.holds),
  };
}

function copyRest({ keys, counters, starts, streams, operators, created }: Omit<Tables, "runs" | "workers">) {
  return {
    operators: copyOperators(operators),
    streams: copyStreams(streams),
    keys: new Map([...keys].map(([space, held]) => [space, new Map(held)] as const)),
    counters: new Map(counters),
    starts: new Map(starts),
    created,
  };
}

function copyStreams(streams: Streams): Streams {
  const copyRun = (run: ReadonlyMap<string, ReadonlyMap<number, StreamChunk>>) =>
    new Map([...run].map(([start, chunks]) => [start, new Map(chunks)] as const));
  return new Map([...streams].map(([id, run]) => [id, copyRun(run)] as const));
}

function copyWorkers({ workers }: Pick<Tables, "workers">): Tables["workers"] {
  return new Map([...workers].map(([id, worker]) => [id, { ...worker }]));
}

/** Adds a run with its first entries. One that is due later only wakes then. */
export function insertRun(
  tables: Tables,
  id: string,
  create: NewRun,
  owner: string | null,
  entries: readonly StoredEntry[],
  now: number,
): MemoryRun {
  const isClaimed = create.claimed && owner !== null;
  const isDue = create.readyAt <= now;
  const row: RunRow = {
    id,
    workflow: create.workflow,
    version: create.version,
    state: isClaimed ? "running" : "accepted",
    traceId: create.traceId,
    key: create.key,
    tags: Object.freeze([...create.tags]),
    priority: create.priority,
    parent: create.parent === null ? null : Object.freeze({ ...create.parent }),
    origin: create.origin,
    createdAt: now,
    endedAt: null,
    deadline: create.deadline,
    head: entries.length,
    headHash: entries.at(-1)?.hash ?? "",
    owner: isClaimed ? owner : null,
    readyAt: !isClaimed && isDue ? create.readyAt : null,
    wakeAt: !isClaimed && !isDue ? create.readyAt : null,
    wake: 0,
    cancel: null,
    claims: isClaimed ? 1 : 0,
    stopReason: null,
    progress: null,
    cost: null,
    codec: create.codec,
    slot: create.needs?.slot ?? null,
    rate: create.needs?.rate ?? null,
  };
  const run: MemoryRun = {
    n: ++tables.created,
    row: Object.freeze(row),
    journal: [],
    inbox: [],
    waits: new Map(),
    state: new Map(),
    holds: new Map(),
    claimedHead: entries.length,
    isCancelling: false,
  };
  tables.runs.set(id, run);
  append(run, entries);
  return run;
}

export function append(run: MemoryRun, entries: readonly StoredEntry[]): void {
  for (const entry of entries) {
    run.journal.push(Object.freeze(copyEntry(entry)));
    if (entry.type === "run.cancelling") run.isCancelling = true;
  }
}

export function patchRow(run: MemoryRun, patch: Partial<RunRow>): void {
  run.row = Object.freeze({ ...run.row, ...patch });
}

/** Takes the fields of a patch that are columns of the row. */
export function columnsOf(patch: RowPatch): Partial<RunRow> {
  const { release, ended, frees, needs, ...columns } = patch;
  return { ...columns, ...needs, ...((release === true || ended === true) && { owner: null }) };
}

export function unreadOf(run: MemoryRun): InboxRow[] {
  return run.inbox.filter((letter) => !letter.isConsumed).map(({ row }) => ({ ...row, data: copyData(row.data) }));
}

export function hasUnseenCancel(run: MemoryRun): boolean {
  return run.row.cancel !== null && !run.isCancelling;
}

/** Whether a run that nobody owns may be claimed: a parked one only after a decision or for a cancel. */
export function mayRun(run: MemoryRun): boolean {
  if (run.row.state !== "parked" || hasUnseenCancel(run)) return true;
  return run.inbox.some((letter) => !letter.isConsumed && letter.row.kind === "decision");
}

export function isOver(run: MemoryRun): boolean {
  return isTerminal(run.row.state);
}

/** Bytes cannot be frozen, so they are copied on the way in and on the way out. */
export function copyData<T extends string | Uint8Array | null>(data: T): T {
  return data instanceof Uint8Array ? (data.slice() as T) : data;
}

/** An entry is frozen as it comes in: only its bytes could be changed by whoever has it. */
export function copyEntry(entry: StoredEntry): StoredEntry {
  return entry.data instanceof Uint8Array ? { ...entry, data: copyData(entry.data) } : entry;
}

export function inCreationOrder(a: MemoryRun, b: MemoryRun): number {
  return a.n - b.n;
}
