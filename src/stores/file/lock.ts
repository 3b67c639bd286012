// Who may write to a directory
// The right itself is an exclusive transaction of SQLite on an empty file: the system ends it with its process, so there is nothing to steal and
// nobody to declare dead. Beside it, `lease.json` names the owner for people, with a number that rises each time the directory changes hands: an
// owner whose number is no longer there has lost it, whatever became of the lock (the file was deleted, the disk keeps no locks).
import { existsSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { PawlError, readProperty } from "../../base/errors.ts";
import type { NewWorker } from "../../core/store.ts";
import { type Database, loadDriver } from "../sqlite/driver.ts";
import { isBusy } from "../sqlite/storage-error.ts";
import type { Disk } from "./disk.ts";

export interface Owner {
  /** Rises each time the directory changes hands. */
  readonly number: number;
  readonly pid: number;
  readonly host: string;
  readonly process_started_at: string;
  readonly since: string;
  /** Only after it has let go by itself. */
  readonly released_at?: string;
  readonly workers: readonly (NewWorker & { readonly startedAt: number })[];
}

const TRIES = 5;
const BETWEEN_MS = 4;

export class DirectoryLock {
  readonly #folder: string;
  readonly #disk: Disk;
  #file: Database | null = null;
  #owner: Owner | null = null;

  constructor(folder: string, disk: Disk) {
    this.#folder = folder;
    this.#disk = disk;
  }

  get isHeld(): boolean {
    return this.#file !== null;
  }

  /** Takes the directory, if nobody else has it. Whoever only looks whether it is taken has it for a moment: so it is tried a few times. */
  take(now: number): boolean {
    if (this.#file !== null) return true;
    for (let left = TRIES; this.#file === null; left--) {
      if (left === 0) return false;
      if (left < TRIES) pause(BETWEEN_MS);
      this.#file = tryLock(this.#path("lock"), "begin exclusive");
    }
    try {
      const number = (readOwner(this.#folder)?.number ?? 0) + 1;
      const process_started_at = new Date(now - process.uptime() * 1000).toISOString();
      const since = new Date(now).toISOString();
      this.#write({ number, pid: process.pid, host: hostname(), process_started_at, since, workers: [] });
      return true;
    } catch (error) {
      this.#letGo();
      throw error;
    }
  }

  /** For people, and for processes that only read: who works here. */
  show(workers: Owner["workers"]): void {
    if (this.#owner !== null) this.#write({ ...this.#owner, workers });
  }

  /** Whether nobody has taken the directory in spite of the lock. */
  get isStillOurs(): boolean {
    const found = readOwner(this.#folder);
    return found === null || found.number === this.#owner?.number;
  }

  release(now: number): void {
    if (this.#file === null) return;
    try {
      if (this.#owner !== null && this.isStillOurs)
        this.#write({ ...this.#owner, workers: [], released_at: new Date(now).toISOString() });
    } finally {
      this.#letGo();
    }
  }

  /** What was taken from us must not be written to any more. */
  abandon(): void {
    this.#letGo();
  }

  #write(owner: Owner): void {
    this.#disk.replace([{ path: this.#path("lease.json"), text: `${JSON.stringify(owner, null, 2)}\n` }]);
    this.#owner = owner;
  }

  #letGo(): void {
    this.#file?.close();
    this.#file = null;
    this.#owner = null;
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }
}

/** The last owner, as far as it can be read. */
export function readOwner(folder: string): Owner | null {
  try {
    const owner = JSON.parse(readFileSync(join(folder, "lease.json"), "utf8")) as Owner;
    return typeof owner.number === "number" && Array.isArray(owner.workers) ? owner : null;
  } catch {
    return null;
  }
}

/** Whether any process, this one as well, has the directory now. */
export function isTaken(folder: string): boolean {
  const path = join(folder, "lock");
  if (!existsSync(path)) return false;
  const file = tryLock(path, "begin; select count(*) from sqlite_master");
  file?.close();
  return file === null;
}

/** `null`: somebody else has it. */
export function tryLock(path: string, statement: string): Database | null {
  let file: Database | null = null;
  try {
    file = loadDriver().open(path);
    file.exec(statement);
    return file;
  } catch (error) {
    file?.close();
    if (isBusy(error)) return null;
    throw new PawlError(
      "storage_unavailable",
      `The lock ${path} cannot be taken (${String(readProperty(error, "message"))}). Make the directory writable for this process, on a local disk.`,
      { fields: { path }, cause: error },
    );
  }
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** The refusal of a second writer (S1-67): nothing was changed, and this is who has the directory. */
export function takenByOther(folder: string, what: string): PawlError {
  const owner = readOwner(folder);
  const isKnown = owner !== null && owner.released_at === undefined;
  const who = isKnown ? `process ${owner.pid} on ${owner.host}, since ${owner.since}` : "another process";
  const { pid, host, since, number } = isKnown ? owner : {};
  return new PawlError(
    "storage_unavailable",
    `${what} was refused: the directory ${folder} belongs to ${who}, and one process at a time may write to it. ` +
      "Do it there, or stop that process first. Signals, decisions, answers and cancels may come from any process. For several workers use SQLite or PostgreSQL.",
    { fields: { path: folder, owner: isKnown ? { pid, host, since, number } : null } },
  );
}
