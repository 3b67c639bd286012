// A lock that a killed process lets go of: an exclusive transaction of SQLite on an empty file. The system ends it with its process, so
// there is nothing to find out about who held it, and nothing to steal.
import { setTimeout as pause } from "node:timers/promises";
import { type Database, loadDriver } from "../stores/sqlite/driver.ts";
import { isBusy } from "../stores/sqlite/storage-error.ts";

const LOOK_AGAIN_MS = 20;

/** Does the work while no other process, and nothing else in this one, holds the lock of this file. */
export async function withFileLock<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const file = loadDriver().open(path);
  try {
    while (!isTaken(file)) await pause(LOOK_AGAIN_MS, undefined, { signal });
    return await work();
  } finally {
    file.close();
  }
}

function isTaken(file: Database): boolean {
  try {
    file.exec("begin exclusive");
    return true;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  }
}
