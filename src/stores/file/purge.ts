// Runs that are past their retention leave the runs, with their folder and all that is in it: to the archive, unless they are to be deleted (C-20).
import type { PurgeRequest } from "../../core/run-query.ts";
import { forgetStarts } from "../memory/limits.ts";
import type { Operators } from "../memory/operators.ts";
import { purge as purgeTables, runsToPurge } from "../memory/queries.ts";
import type { Directory } from "./directory.ts";
import { forgetCounters, type Holdings, ownerOfCounter } from "./holdings.ts";
import type { Leftovers } from "./leftovers.ts";
import type { Share } from "./run-document.ts";

export interface PurgeOptions {
  readonly now: number;
  /** Their folders go to the archive. */
  readonly isKept: boolean;
  holds(): Operators["holds"];
}

/** Must be called while nobody can hold another run. */
export function purge(directory: Directory, request: PurgeRequest, options: PurgeOptions): number {
  const { now, isKept, holds } = options;
  const holdings = directory.own("A purge");
  const known = holdings.tables.operators.holds;
  known.clear();
  for (const [run, hold] of holds()) known.set(run, hold);
  const gone = new Set(runsToPurge(holdings.tables, request).map(({ row }) => row.id));
  if (request.dryRun === true) return gone.size;
  if (gone.size === 0) {
    forgetStarts(holdings.tables, now);
    return 0;
  }
  // What was delivered to them must not be delivered again, to a run that takes up their id.
  const senders = [...holdings.shares].filter(([, { mentions }]) => [...mentions].some((run) => gone.has(run)));
  directory.write("A purge", (_, batch) => {
    for (const [sender] of senders) batch.later(sender);
  });
  try {
    absorb(directory, holdings, gone, now);
    for (const run of gone) leave(directory, run, isKept);
  } catch (error) {
    directory.forget();
    throw error;
  }
  return directory.write("A purge", (_, batch) => {
    const purged = purgeTables(holdings.tables, request, now);
    for (const run of gone) holdings.shares.delete(run);
    for (const run of forgetCounters(holdings, (of) => gone.has(of))) batch.later(run);
    return purged;
  });
}

function leave(directory: Directory, run: string, isKept: boolean): void {
  if (isKept) directory.moveToArchive(run);
  else {
    directory.disk.remove(directory.folderOf(run));
    directory.forgetStamp(run);
  }
}

/** Keeps what of these runs still counts when they are gone: durable before the first of them leaves. */
function absorb(directory: Directory, holdings: Holdings, gone: ReadonlySet<string>, now: number): void {
  const { leftovers, shares } = holdings;
  const isCounted = (key: string) => !gone.has(ownerOfCounter(key) ?? "");
  const leaving = [...gone].map((run) => [run, shares.get(run) as Share] as const).filter(([, share]) => share);
  const starts = leaving.flatMap(([, { begun }]) => begun.filter(({ until }) => until > now));
  const counting = leaving.filter(([, { counters }]) => [...counters.keys()].some(isCounted));
  const hasLeftovers = starts.length > 0 || counting.length > 0;
  if (!hasLeftovers) return;
  for (const [, { counters }] of counting)
    for (const [key, by] of counters)
      if (isCounted(key)) leftovers.counters.set(key, (leftovers.counters.get(key) ?? 0) + by);
  for (const [key, value] of leftovers.counters) if (value === 0) leftovers.counters.delete(key);
  const kept: Leftovers = {
    counters: leftovers.counters,
    starts: [...leftovers.starts.filter(({ until }) => until > now), ...starts],
    absorbed: leaving.map(([run]) => directory.checksumOf(run)),
  };
  directory.writeLeftovers(kept);
  holdings.leftovers = kept;
}
