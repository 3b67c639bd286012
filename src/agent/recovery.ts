// Workers and what they have left
// For the start of a process, for people, and for what stands still: which workers have something undone, taking it up, giving it up, and saying what
// became of an effect of unknown outcome.
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Clock } from "../base/clock.ts";
import { hasCode, PawlError } from "../base/errors.ts";
import { unlessMissing } from "../files/atomic-file.ts";
import { isTaken, readOwner } from "../stores/file/lock.ts";
import type { PromptResponse } from "./adapter.ts";
import type { CheckpointStore, WorkerState } from "./checkpoint-store.ts";
import type { DurableLoop } from "./durable-loop.ts";
import { type EffectRecord, effectsOf, settledSnapshot } from "./effect-record.ts";
import { parseSnapshot, snapshotText } from "./snapshot.ts";
import { directoryStore, isWorkerName, pathOfWorker, type WorkerDirectory } from "./worker-directory.ts";

/** What is known of a worker from its directory. */
export interface WorkerReport {
  readonly worker: string;
  /** "damaged": its documents cannot be read. */
  readonly state: WorkerState | "damaged";
  readonly execution: string | null;
  readonly startedAt: number | null;
  readonly deadline: number | null;
  /** When its last checkpoint was saved, and by the how many-th start. */
  readonly savedAt: number | null;
  readonly attempt: number | null;
  /** Why it has ended without a checkpoint. */
  readonly failure: string | null;
  /** Effects of which nobody knows whether they happened. */
  readonly unknownEffects: readonly EffectRecord[];
  /** The process that works on it now. */
  readonly owner: { readonly pid: number; readonly host: string; readonly since: string } | null;
}

/** Every worker under a root. */
export async function listWorkers(root: string): Promise<WorkerReport[]> {
  const reports: WorkerReport[] = [];
  for (const worker of await workersIn(root)) reports.push(await reportOf({ root, worker }));
  return reports;
}

/** The workers under a root that have something undone, damaged or not, and that nobody works on. */
export async function listRecoverable(root: string): Promise<WorkerReport[]> {
  const all = await listWorkers(root);
  return all.filter(
    ({ state, owner, failure }) =>
      owner === null && failure === null && (state === "started" || state === "incomplete" || state === "damaged"),
  );
}

/** What became of a worker's work. */
export type Recovery<O> =
  | { readonly worker: string; readonly response: PromptResponse<O> }
  | { readonly worker: string; readonly error: unknown };

/** Takes up what the workers under a root have left, one after the other; for the start of a process. One that fails does not stop the others. */
export async function recover<I, O>(
  root: string,
  loopOf: (worker: string) => DurableLoop<I, O>,
): Promise<Recovery<O>[]> {
  const recoveries: Recovery<O>[] = [];
  for (const { worker } of await listRecoverable(root)) {
    try {
      const response = await loopOf(worker).recover();
      if (response !== null) recoveries.push({ worker, response });
    } catch (error) {
      // Another process was quicker.
      if (!hasCode(error, "worker_directory_busy")) recoveries.push({ worker, error });
    }
  }
  return recoveries;
}

/** Gives up what a worker has left: it goes to the archive, with the reason, and is never taken up again. False: there was nothing. */
export async function abandon(
  directory: WorkerDirectory & { readonly clock?: Clock },
  reason: string,
): Promise<boolean> {
  if (!(await isFolder(pathOfWorker(directory)))) return false;
  return owning(directory, async (store) => {
    if ((await store.state()) === "empty") return false;
    await store.clear(`abandoned: ${reason}`);
    return true;
  });
}

/** Says whether an effect of unknown outcome has happened, by its key. What did not happen may be done again. */
export async function settleEffect(
  directory: WorkerDirectory,
  key: string,
  happened: boolean,
  message = "It has been done.",
): Promise<void> {
  const place = pathOfWorker(directory);
  if (!(await isFolder(place))) throw noSuchEffect(place, key);
  await owning(directory, async (store) => {
    const checkpoint = await store.loadCheckpoint();
    const snapshot = checkpoint === null ? null : parseSnapshot(checkpoint.snapshot);
    const settled = snapshot === null ? null : settledSnapshot(snapshot, key, happened ? message : null);
    if (checkpoint === null || settled === null) throw noSuchEffect(place, key);
    await store.saveCheckpoint({ ...checkpoint, sequence: checkpoint.sequence + 1, snapshot: snapshotText(settled) });
  });
}

function noSuchEffect(place: string, key: string): PawlError {
  return new PawlError("invalid_argument", `${place} has no effect of unknown outcome with the key ${key}.`, {
    fields: { place, key },
  });
}

async function owning<T>(directory: WorkerDirectory, work: (store: CheckpointStore) => Promise<T>): Promise<T> {
  const store = directoryStore(directory);
  await store.open();
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

async function workersIn(root: string): Promise<string[]> {
  const names = ((await unlessMissing(readdir(resolve(root)))) ?? []).filter(isWorkerName).sort();
  const workers: string[] = [];
  // A directory may be a link to another disk.
  for (const name of names) if (await isFolder(join(resolve(root), name))) workers.push(name);
  return workers;
}

/** To take a worker's directory makes it: whoever only asks must look first. */
async function isFolder(path: string): Promise<boolean> {
  return (await unlessMissing(stat(path)))?.isDirectory() === true;
}

async function reportOf(directory: WorkerDirectory): Promise<WorkerReport> {
  const store = directoryStore(directory);
  const path = pathOfWorker(directory);
  const taken = await orNull(async () => isTaken(path));
  const owner = taken === true ? readOwner(path) : null;
  const request = await orNull(() => store.loadRequest());
  const checkpoint = await orNull(() => store.loadCheckpoint());
  const state = await orNull(() => store.state());
  const isDamaged = (state === "incomplete" && checkpoint === null) || (state !== "empty" && request === null);
  return {
    worker: directory.worker,
    state: state === null || taken === null || isDamaged ? "damaged" : state,
    execution: request?.execution ?? checkpoint?.execution ?? null,
    startedAt: request?.startedAt ?? null,
    deadline: request?.deadline ?? null,
    savedAt: checkpoint?.savedAt ?? null,
    attempt: checkpoint?.attempt ?? null,
    failure: request?.failure ?? null,
    unknownEffects: checkpoint === null ? [] : ((await orNull(async () => doubtsOf(checkpoint.snapshot))) ?? []),
    owner: owner === null ? null : { pid: owner.pid, host: owner.host, since: owner.since },
  };
}

function doubtsOf(snapshot: string): readonly EffectRecord[] {
  return effectsOf(parseSnapshot(snapshot)).filter(({ status }) => status !== "executed");
}

/** Whoever looks must not fail over what it looks at. */
async function orNull<T>(look: () => Promise<T>): Promise<T | null> {
  try {
    return await look();
  } catch (error) {
    if (LOOKED_AT.some((code) => hasCode(error, code))) return null;
    throw error;
  }
}

const LOOKED_AT = ["corrupt_value", "snapshot_restore", "storage_unavailable"] as const;
