// Applying a commit, one run after the other
// Every condition of a run is checked before anything of it is written, so a refusal leaves no trace (P18).
import { counterKey } from "../../core/counters.ts";
import type { Commit, CounterChange, KeyRow, NewKey, RunCommit, Verdict, WaitChange } from "../../core/store.ts";
import { commitFault } from "../commit-fault.ts";
import { counted, isPast, limitOf, refusalOf } from "../counters.ts";
import { deliver } from "./deliver.ts";
import { append, columnsOf, copyData, insertRun, isOver, type MemoryRun, patchRow, type Tables } from "./tables.ts";

export function commit(tables: Tables, { worker, runs }: Commit, now: number): Verdict[] {
  const isFenced = worker !== null && !tables.workers.has(worker);
  return runs.map((part) =>
    isFenced ? { run: part.run, kind: "refused", why: "fenced" } : commitRun(tables, worker, part, now),
  );
}

export function commitRun(tables: Tables, worker: string | null, part: RunCommit, now: number): Verdict {
  const fault = commitFault(part);
  if (fault !== null) return { run: part.run, kind: "failed", error: fault };
  const refusal =
    whyNotHere(tables, worker, part) ??
    whyNotNow(tables, part) ??
    whyNotKeys(tables, part) ??
    whyNotCounters(tables, part);
  if (refusal !== null) return refusal;
  apply(tables, worker, part, now);
  return { run: part.run, kind: "applied" };
}

function whyNotHere(tables: Tables, worker: string | null, part: RunCommit): Verdict | null {
  const run = tables.runs.get(part.run);
  if (part.create !== undefined) {
    return run === undefined ? null : { run: part.run, kind: "refused", why: "exists", holder: run.row };
  }
  const isOurs = run !== undefined && worker !== null && run.row.owner === worker && !isOver(run);
  if (isOurs && run.journal.length === part.head) return null;
  return { run: part.run, kind: "conflict", head: run?.journal.length ?? 0 };
}

function whyNotNow(tables: Tables, part: RunCommit): Verdict | null {
  const run = tables.runs.get(part.run);
  const refuse = (why: "wake" | "cancel" | "consumed"): Verdict => ({ run: part.run, kind: "refused", why });
  if (part.ifWake !== undefined && part.ifWake !== (run?.row.wake ?? 0)) return refuse("wake");
  if (part.ifNotCancelled === true && (run?.row.cancel ?? null) !== null) return refuse("cancel");
  const ids = part.consumes;
  if (ids === undefined) return null;
  const isUnread = (id: string) => run?.inbox.some(({ row, isConsumed }) => row.id === id && !isConsumed) ?? false;
  return new Set(ids).size < ids.length || !ids.every(isUnread) ? refuse("consumed") : null;
}

function whyNotKeys(tables: Tables, part: RunCommit): Verdict | null {
  if (part.keys === undefined) return null;
  const asked = new Set<string>();
  for (const key of part.keys) {
    const holder = holderOf(tables, key);
    const name = JSON.stringify([key.space, key.key]);
    if (asked.has(name))
      return { run: part.run, kind: "refused", why: "key", holder: { run: part.run, digest: key.digest } };
    if (holder !== null && holder.run !== key.from) return { run: part.run, kind: "refused", why: "key", holder };
    asked.add(name);
  }
  return null;
}

function whyNotCounters(tables: Tables, part: RunCommit): Verdict | null {
  if (part.counters === undefined) return null;
  const sums = new Map<string, number>();
  const holds = new Map(tables.runs.get(part.run)?.holds);
  const current = (key: string) => sums.get(key) ?? tables.counters.get(key) ?? 0;
  for (const [at, change] of part.counters.entries()) {
    if (!isOfRun(tables, part, change)) continue;
    const key = counterKey(change);
    const value = current(key);
    const sum = counted(change, value);
    const hold = (holds.get(key) ?? 0) + (change.held ? change.by : 0);
    const max = limitOf(change, current);
    if (isPast(change, sum, max) || hold < 0) return refusalOf(part, at, value, max);
    sums.set(key, sum);
    holds.set(key, hold);
  }
  return null;
}

/** Whether there is somebody to count for. */
function isOfRun(tables: Tables, part: RunCommit, { of }: CounterChange): boolean {
  return of === undefined || of === part.run || tables.runs.has(of);
}

function apply(tables: Tables, worker: string | null, part: RunCommit, now: number): void {
  const run = openRun(tables, worker, part, now);
  for (const letter of run.inbox) if (part.consumes?.includes(letter.row.id)) letter.isConsumed = true;
  for (const key of part.keys ?? []) setKey(tables, key, { run: part.run, digest: key.digest });
  for (const change of part.counters ?? []) count(tables, part, run, change);
  for (const change of part.waits ?? []) changeWaits(run, change);
  for (const row of part.state ?? []) run.state.set(row.key, Object.freeze({ key: row.key, data: copyData(row.data) }));
  for (const child of part.children ?? []) {
    if (!tables.runs.has(child.run)) insertRun(tables, child.run, child.create, worker, [child.entry], now);
  }
  if (part.row !== undefined) patchRow(run, columnsOf(part.row));
  if (part.row?.ended === true) close(tables, run, now);
  for (const message of part.messages ?? []) deliver(tables, message, now);
}

function openRun(tables: Tables, worker: string | null, part: RunCommit, now: number): MemoryRun {
  if (part.create !== undefined) return insertRun(tables, part.run, part.create, worker, part.entries, now);
  const run = tables.runs.get(part.run) as MemoryRun;
  append(run, part.entries);
  return run;
}

function changeWaits(run: MemoryRun, change: WaitChange): void {
  if ("closeAll" in change) run.waits.clear();
  else if ("close" in change) run.waits.delete(change.close);
  else run.waits.set(change.open.key, Object.freeze({ run: run.row.id, workflow: run.row.workflow, ...change.open }));
}

function count(tables: Tables, part: RunCommit, run: MemoryRun, change: CounterChange): void {
  if (!isOfRun(tables, part, change)) return;
  const key = counterKey(change);
  const value = tables.counters.get(key) ?? 0;
  addTo(tables.counters, key, counted(change, value) - value);
  if (change.held) addTo(run.holds, key, change.by);
}

function addTo(sums: Map<string, number>, key: string, by: number): void {
  const sum = Math.max(0, (sums.get(key) ?? 0) + by);
  if (sum === 0) sums.delete(key);
  else sums.set(key, sum);
}

function close(tables: Tables, run: MemoryRun, now: number): void {
  patchRow(run, { readyAt: null, wakeAt: null, endedAt: run.row.endedAt ?? now });
  for (const [key, held] of run.holds) addTo(tables.counters, key, -held);
  run.holds.clear();
  run.waits.clear();
  run.inbox.length = 0;
}

export function holderOf(tables: Tables, { space, key }: Pick<NewKey, "space" | "key">): KeyRow | null {
  return tables.keys.get(space)?.get(key) ?? null;
}

function setKey(tables: Tables, { space, key }: NewKey, row: KeyRow): void {
  const keys = tables.keys.get(space) ?? new Map<string, KeyRow>();
  tables.keys.set(space, keys.set(key, Object.freeze(row)));
}
