import { assertName } from "../base/ids.ts";
import { assertNoSchedule } from "../core/slot-run.ts";
import type { CounterChange } from "../core/store.ts";
import { openJournal } from "../core/values.ts";
import { forkCommit, forkPoint, retryPoint, soundStart } from "./fork.ts";
import { dryPolicyOf, type ForkOptions, idTaken } from "./fork-effects.ts";
import { rowOf } from "./run.ts";
import { type StartPorts, startSpace } from "./start.ts";

/** Starts a run that inherits another one's journal, and gives its id. Without options it takes the place of its source, and its start key. */
export async function forkRun(ports: StartPorts, id: string, options: ForkOptions | null): Promise<string> {
  return (await fork(ports, id, options, false)) as string;
}

/** Retries a run that nobody has retried yet; `null`: somebody has. */
export function retryOnce(ports: StartPorts, id: string): Promise<string | null> {
  return fork(ports, id, null, true);
}

async function fork(
  ports: StartPorts,
  id: string,
  options: ForkOptions | null,
  isOnly: boolean,
): Promise<string | null> {
  const { store, host, codec, worker } = ports;
  if (options?.id !== undefined) assertName("run id", options.id);
  const isRetry = options === null;
  const row = await rowOf(id, store);
  assertNoSchedule(row.workflow);
  const stored = await store.journal(id);
  // A fork before a damaged entry is the way out for a run that has one.
  const journal = isRetry ? openJournal(host, codec, row, stored, true) : soundStart({ host, codec }, row, stored);
  const point = isRetry ? retryPoint(id, journal) : forkPoint(id, journal, options.at);
  const effects = isRetry ? null : dryPolicyOf(id, options, journal.slice(0, point.at));
  const forked = options?.id ?? ports.ids.next();
  const commit = await forkCommit(row, journal, point, forked, { store, host, codec, isRetry, effects });
  const { create } = commit;
  if (create === undefined) throw new Error("a fork creates a run");
  const space = startSpace(row.workflow);
  const held = isRetry && row.key !== null ? await store.key(space, row.key) : null;
  const keys =
    held !== null && row.key !== null && held.run === id
      ? [{ space, key: row.key, digest: held.digest, from: id }]
      : [];
  const verdict = await worker.committer.write({
    ...commit,
    create: { ...create, key: keys[0]?.key ?? null },
    ...(keys.length > 0 ? { keys: [...(commit.keys ?? []), ...keys] } : {}),
    ...(isRetry && { counters: [...(commit.counters ?? []), retried(id, isOnly)] }),
  });
  if (verdict.kind === "refused" && verdict.why === "key") return verdict.holder.run;
  if (verdict.kind === "refused" && verdict.why === "counter") return null;
  if (verdict.kind === "refused" && verdict.why === "exists" && verdict.holder.origin !== id) throw idTaken(forked);
  worker.hint();
  return forked;
}

/** Counted as long as the run is kept that was retried. */
function retried(run: string, isOnly: boolean): CounterChange {
  return { key: "retried", by: 1, max: isOnly ? 1 : null, held: false, of: run };
}
