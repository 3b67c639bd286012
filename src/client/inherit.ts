// New runs that inherit the journal of another one: retries and forks.

import type { Codec } from "../base/envelope.ts";
import { assertName, type Ids } from "../base/ids.ts";
import type { Host } from "../core/host.ts";
import type { Entry } from "../core/journal.ts";
import { assertNoSchedule } from "../core/slot-run.ts";
import type { CounterChange, NewKey, RunCommit, RunRow, Store, Verdict } from "../core/store.ts";
import { openJournal } from "../core/values.ts";
import { type ForkPoint, forkCommit, soundStart } from "./fork.ts";
import { dryPolicyOf, type ForkOptions, idTaken } from "./fork-effects.ts";
import { rowOf } from "./run.ts";
import { startSpace } from "./start.ts";

export interface InheritPorts {
  readonly store: Store;
  readonly host: Host;
  readonly codec: Codec;
  readonly ids: Ids;
  write(commit: RunCommit): Promise<Verdict>;
}

export interface Inheriting {
  where(journal: readonly Entry[]): ForkPoint;
  /** A retry takes the start key along, and is counted. */
  readonly isRetry: boolean;
  /** What was asked of a fork. */
  readonly fork?: ForkOptions;
  /** Refuses a retry of what was retried before. */
  readonly isOnly?: boolean;
}

/** The id of the run that goes on; `null`: it was retried before, and is to be only once. */
export async function inherit(ports: InheritPorts, id: string, how: Inheriting): Promise<string | null> {
  const { store, host, codec } = ports;
  const row = await rowOf(id, store);
  assertNoSchedule(row.workflow);
  const stored = await store.journal(id);
  // A fork before a damaged entry is the way out for a run that has one.
  const journal = how.isRetry ? openJournal(host, codec, row, stored, true) : soundStart({ host, codec }, row, stored);
  const { fork, isRetry } = how;
  if (fork?.id !== undefined) assertName("run id", fork.id);
  const point = how.where(journal);
  const effects = fork === undefined ? null : dryPolicyOf(id, fork, journal.slice(0, point.at));
  const heir = fork?.id ?? ports.ids.next();
  const commit = await forkCommit(row, journal, point, heir, { store, host, codec, isRetry, effects });
  const verdict = await ports.write(isRetry ? await asRetry(store, row, commit, how.isOnly === true) : asFork(commit));
  if (verdict.kind === "refused" && verdict.why === "key") return verdict.holder.run;
  if (verdict.kind === "refused" && verdict.why === "exists" && verdict.holder.origin !== id) throw idTaken(heir);
  return verdict.kind === "refused" && verdict.why === "counter" ? null : heir;
}

/** The start key stays with the source. */
function asFork(commit: RunCommit): RunCommit {
  const { create } = commit;
  return create === undefined ? commit : { ...commit, create: { ...create, key: null } };
}

/** With the start key of the run that it goes on from, if that has it still. Retries are counted as long as that run is kept. */
async function asRetry(store: Store, row: RunRow, commit: RunCommit, isOnly: boolean): Promise<RunCommit> {
  const { create } = commit;
  if (create === undefined) throw new Error("a fork creates a run");
  const space = startSpace(row.workflow);
  const held = row.key === null ? null : await store.key(space, row.key);
  const moved: NewKey[] =
    row.key !== null && held?.run === row.id ? [{ space, key: row.key, digest: held.digest, from: row.id }] : [];
  const counter: CounterChange = { key: "retried", by: 1, max: isOnly ? 1 : null, held: false, of: row.id };
  return {
    ...commit,
    create: { ...create, key: moved[0]?.key ?? null },
    ...(moved.length > 0 && { keys: [...(commit.keys ?? []), ...moved] }),
    counters: [...(commit.counters ?? []), counter],
  };
}
