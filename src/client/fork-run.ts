// New runs that inherit the journal of another one: forks and retries.
import { assertName } from "../base/ids.ts";
import type { StoredEntry } from "../core/journal.ts";
import { assertNotAlerts, assertNotBodiless } from "../core/own-workflows.ts";
import type { CounterChange, KeyRow, NewKey, NewRun, RunCommit, RunRow } from "../core/store.ts";
import { openJournal } from "../core/values.ts";
import { type ForkPorts, forkCommit, soundStart } from "./fork.ts";
import { dryPolicyOf, type ForkOptions, idTaken } from "./fork-effects.ts";
import { forkPoint, retryPoint } from "./fork-point.ts";
import { rowOf } from "./run.ts";
import { type StartPorts, startSpace } from "./start.ts";

/** Starts a run that inherits another one's journal up to a point, and gives its id. */
export async function forkRun(ports: StartPorts, id: string, options: ForkOptions): Promise<string> {
  const { ids, worker } = ports;
  if (options.id !== undefined) assertName("run id", options.id);
  assertNotAlerts(options.id);
  const { row, stored } = await sourceOf(ports, id);
  // A fork before a damaged entry is the way out for a run that has one.
  const journal = soundStart(ports, row, stored);
  const point = forkPoint(id, journal, options.at);
  const effects = dryPolicyOf(id, options, journal);
  const forked = options.id ?? ids.next();
  const commit = await forkCommit(row, journal, point, forked, forkPorts(ports, { isRetry: false, effects }));
  // The start key stays with the source.
  const verdict = await worker.committer.write({ ...commit, create: { ...creationIn(commit), key: null } });
  if (verdict.kind === "refused" && verdict.why === "exists" && verdict.holder.origin !== id) throw idTaken(forked);
  worker.hint();
  return forked;
}

/**
 * Starts a run that goes on before the failure which ended another one and takes its place, and its start key. Gives its id, or that of the run that has
 * the key by now; `null`: with `isOnly`, where it was retried before.
 */
export async function retryRun(
  ports: StartPorts,
  id: string,
  how: { readonly isOnly?: boolean } = {},
): Promise<string | null> {
  const { host, codec, ids, worker } = ports;
  const { row, stored } = await sourceOf(ports, id);
  const journal = openJournal(host, codec, row, stored, true);
  const point = retryPoint(id, journal);
  const held = row.key === null ? null : await ports.store.key(startSpace(row.workflow), row.key);
  if (held !== null && held.run !== id && (await isAtWork(ports, held.run))) return how.isOnly ? null : held.run;
  const heir = ids.next();
  const commit = await forkCommit(row, journal, point, heir, forkPorts(ports, { isRetry: true, effects: null }));
  const verdict = await worker.committer.write(inItsPlace(row, held, commit, how.isOnly === true));
  if (verdict.kind === "refused" && verdict.why === "key") return verdict.holder.run;
  worker.hint();
  return verdict.kind === "refused" && verdict.why === "counter" ? null : heir;
}

async function sourceOf({ store }: StartPorts, id: string): Promise<{ row: RunRow; stored: StoredEntry[] }> {
  const row = await rowOf(id, store);
  assertNotBodiless(row.workflow);
  const stored = await store.journal(id);
  // Read behind the journal: newer code may have taken the run over meanwhile, and what it has recorded is not for older code (P34).
  const { version } = await rowOf(id, store);
  return { row: { ...row, version }, stored };
}

function forkPorts({ store, host, codec }: StartPorts, how: Pick<ForkPorts, "isRetry" | "effects">): ForkPorts {
  return { store, host, codec, ...how };
}

function creationIn({ create }: RunCommit): NewRun {
  if (create === undefined) throw new Error("a fork creates a run");
  return create;
}

/** Whether a run that has taken the place of another does its work, or has done it: one more would do that again (I17). */
async function isAtWork({ store }: StartPorts, run: string): Promise<boolean> {
  const state = (await store.run(run))?.state;
  return state !== undefined && state !== "failed" && state !== "cancelled";
}

/** With the start key of the run that it goes on from, or of the last one that did so in vain. Retries are counted as long as that run is kept. */
function inItsPlace(row: RunRow, held: KeyRow | null, commit: RunCommit, isOnly: boolean): RunCommit {
  const { key } = row;
  const space = startSpace(row.workflow);
  const moved: NewKey[] = key !== null && held !== null ? [{ space, key, digest: held.digest, from: held.run }] : [];
  const counter: CounterChange = { key: "retried", by: 1, max: isOnly ? 1 : null, held: false, of: row.id };
  return {
    ...commit,
    create: { ...creationIn(commit), key: moved[0]?.key ?? null },
    ...(moved.length > 0 && { keys: [...(commit.keys ?? []), ...moved] }),
    counters: [...(commit.counters ?? []), counter],
  };
}
