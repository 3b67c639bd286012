// What the contract cases are made of: the shape of a case, and short ways to say what most of them need.
import assert from "node:assert/strict";
import type { ManualClock } from "../../base/clock.ts";
import type { EntryType, StoredEntry } from "../../core/journal.ts";
import type {
  ClaimedRun,
  ClaimRequest,
  Commit,
  Message,
  NewRun,
  NewWorker,
  RunCommit,
  RunRow,
  Store,
  Verdict,
} from "../../core/store.ts";

/** An empty store that was opened, on clocks that stand still. */
export interface OpenedStore {
  readonly store: Store;
  readonly clock: ManualClock;
  readonly leaseClock: ManualClock;
}

/** One promise of the store port. `open` gives a new, empty store each time; whoever runs the case closes it. */
export interface StoreCase {
  readonly name: string;
  /** It is about stores whose processes are all on one machine. */
  readonly isForOneMachine?: true;
  run(open: () => Promise<OpenedStore>): Promise<void>;
}

/** A case on one store, with the worker "w1" registered. */
export function storeCase(name: string, check: (opened: OpenedStore) => Promise<void>): StoreCase {
  return {
    name,
    async run(open) {
      const opened = await open();
      await opened.store.register(newWorker("w1"));
      await check(opened);
    },
  };
}

/** A case about a store whose processes are all on one machine. */
export function oneMachineCase(name: string, check: (opened: OpenedStore) => Promise<void>): StoreCase {
  return { ...storeCase(name, check), isForOneMachine: true };
}

export function newWorker(id: string, changes: Partial<NewWorker> = {}): NewWorker {
  return {
    id,
    name: `name of ${id}`,
    leaseMs: 15_000,
    process: { pid: 4711, startedAt: "1", boot: "boot-1", pidNamespace: "pid:[1]" },
    handles: [{ workflow: "order", version: "1.0.0" }],
    ...changes,
  };
}

export function newRun(changes: Partial<NewRun> = {}): NewRun {
  return {
    workflow: "order",
    version: "1.0.0",
    traceId: "trace",
    key: null,
    tags: [],
    priority: 0,
    parent: null,
    origin: null,
    deadline: null,
    claimed: false,
    readyAt: 0,
    codec: "json",
    ...changes,
  };
}

export function entry(seq: number, type: EntryType = "step.started", changes: Partial<StoredEntry> = {}): StoredEntry {
  return { seq, at: 1000 + seq, type, key: null, data: null, hash: `hash-${seq}`, ...changes };
}

/** The part of a commit that creates a run with its first entry. */
export function creation(run: string, changes: Partial<NewRun> = {}): RunCommit {
  return { run, head: 0, entries: [entry(0, "run.started")], create: newRun(changes) };
}

/** The part of a commit that appends so many entries. */
export function appending(run: string, head: number, count = 1, parts: Partial<RunCommit> = {}): RunCommit {
  return { run, head, entries: Array.from({ length: count }, (_, i) => entry(head + i)), ...parts };
}

/** The part of a commit that ends a run. */
export function ending(
  run: string,
  head: number,
  state: "succeeded" | "failed" | "cancelled" = "succeeded",
): RunCommit {
  return { run, head, entries: [entry(head, `run.${state}`)], row: { state, ended: true, release: true } };
}

/** The same with all that a worker says of the row: a store may have a short way for it. */
export function endingWhole(run: string, head: number): RunCommit {
  const row = { claims: 0, head: head + 1, headHash: `hash-${head}`, endedAt: 55, stopReason: "completed" };
  const end = ending(run, head);
  return { ...end, row: { ...end.row, ...row, readyAt: null, wakeAt: null } };
}

/** The part of a commit that lets a run go while it waits. */
export function suspending(run: string, head: number, parts: Partial<RunCommit> = {}): RunCommit {
  return { run, head, entries: [], row: { state: "waiting", release: true, claims: 0 }, ...parts };
}

export async function commitAll(store: Store, ...runs: readonly RunCommit[]): Promise<Verdict[]> {
  return store.commit({ worker: "w1", runs } satisfies Commit);
}

/** Commits for "w1" and expects every part to be applied. */
export async function apply(store: Store, ...runs: readonly RunCommit[]): Promise<void> {
  const verdicts = await commitAll(store, ...runs);
  assert.deepEqual(
    verdicts,
    runs.map(({ run }) => ({ run, kind: "applied" })),
  );
}

export function claimRequest(changes: Partial<ClaimRequest> = {}): ClaimRequest {
  return { worker: "w1", handles: newWorker("w1").handles, limit: 10, suspect: false, ...changes };
}

export async function claimIds(store: Store, changes: Partial<ClaimRequest> = {}): Promise<string[]> {
  return (await store.claim(claimRequest(changes))).map(({ run }) => run);
}

/** Claims exactly one run. */
export async function claimOne(store: Store, changes: Partial<ClaimRequest> = {}): Promise<ClaimedRun> {
  const claimed = await store.claim(claimRequest(changes));
  assert.equal(claimed.length, 1);
  return claimed[0] as ClaimedRun;
}

export function signal(to: string, id: string, changes: Partial<Message> = {}): Message {
  return { to, id, kind: "signal", name: "paid", data: '"yes"', ...changes };
}

export function cancel(to: string, reason = "changed my mind"): Message {
  return { to, id: "cancel", kind: "cancel", name: "", data: reason };
}

export async function rowOf(store: Store, run: string): Promise<RunRow> {
  const row = await store.run(run);
  assert.ok(row !== null, `run ${run} is there`);
  return row;
}

export async function headOf(store: Store, run: string): Promise<number> {
  return (await store.journal(run)).length;
}
