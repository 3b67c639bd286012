// A worker's directory
// `<root>/<worker>/` with `request.json`, `checkpoint.json` and, at the end, an empty `completed`. Beside them stand `lock` and `lease.json` (who has it),
// `archive/`, `history/` and `quarantine/`, and drafts, `*.tmp`, of writes that were cut off.
//
//   WD1. One process at a time has the directory. The lock ends with its process; whoever comes second is told who has it (S1-67).
//   WD2. A document is written under a name of its own, synced, renamed, and synced with its folder (T-14).
//   WD3. Drafts are never read, and removed by whoever takes the directory.
import { randomBytes } from "node:crypto";
import { readdir, readFile, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { type Clock, systemClock } from "../base/clock.ts";
import { PawlError } from "../base/errors.ts";
import { type Access, makeFolder, removeFile, replaceFile, unlessMissing } from "../files/atomic-file.ts";
import { Disk, type Durability, unavailable } from "../stores/file/disk.ts";
import { DirectoryLock, readOwner } from "../stores/file/lock.ts";
import {
  type CheckpointStore,
  type CheckpointStoreOptions,
  checkpointStore,
  type WorkerFolder,
} from "./checkpoint-store.ts";

export interface WorkerDirectory {
  /** The folder of all workers; it is made. */
  readonly root: string;
  /** Stays the same over restarts: it is how a worker finds its work again. Letters, digits, ".", "_", "-" and "@". */
  readonly worker: string;
  /** `"power"` (the default): what was saved survives power loss. `"process"`: the last moments may be lost then. */
  readonly durability?: Durability;
}

export interface DirectoryStoreOptions extends WorkerDirectory, CheckpointStoreOptions {
  readonly clock?: Clock;
  /** Throws the errors of a broken disk where it is accessed, for tests. */
  readonly fault?: Access;
}

const DRAFT = ".tmp";
const OWN_FOLDERS = ["archive", "history", "quarantine"];
const NEVER = new AbortController().signal;
const WORKER = /^[A-Za-z0-9_@][A-Za-z0-9._@-]{0,99}$/;

/** Keeps a worker's execution in its directory. */
export function directoryStore(options: DirectoryStoreOptions): CheckpointStore {
  return checkpointStore(directoryFolder(options), options);
}

/** The same without the rules of executions: for those who look at the documents. */
export function directoryFolder(options: DirectoryStoreOptions): WorkerFolder {
  return new DirectoryFolder(options);
}

export function isWorkerName(name: unknown): name is string {
  return typeof name === "string" && WORKER.test(name);
}

/** Where a worker's documents are. */
export function pathOfWorker({ root, worker }: WorkerDirectory): string {
  return join(resolve(root), checkedWorkerName(worker));
}

export function checkedWorkerName(worker: string): string {
  if (isWorkerName(worker)) return worker;
  throw new PawlError(
    "invalid_name",
    `worker: ${JSON.stringify(worker) ?? "none"} cannot name a directory. Use up to 100 letters, digits, ".", "_", "-" and "@", without "." or "-" in front.`,
    { fields: { what: "worker", value: worker } },
  );
}

class DirectoryFolder implements WorkerFolder {
  readonly place: string;
  readonly #worker: string;
  readonly #clock: Clock;
  readonly #how: { readonly access: Access; readonly isSynced: boolean };
  readonly #lock: DirectoryLock;

  constructor(options: DirectoryStoreOptions) {
    const { clock = systemClock, fault = () => {}, durability = "power" } = options;
    this.place = pathOfWorker(options);
    this.#worker = options.worker;
    this.#clock = clock;
    this.#how = { access: fault, isSynced: durability === "power" };
    // It is read by people and by processes that are refused: after a power cut nobody has the directory anyway.
    this.#lock = new DirectoryLock(this.place, new Disk({ durability: "process" }));
  }

  async open(): Promise<void> {
    await this.#guarded(() => makeFolder(this.place));
    if (!this.#lock.take(this.#clock.now())) throw busy(this.place, this.#worker);
    await this.#guarded(() => this.#removeDrafts());
  }

  async close(): Promise<void> {
    this.#lock.release(this.#clock.now());
  }

  async read(name: string): Promise<Uint8Array | null> {
    return this.#guarded(() => unlessMissing(readFile(join(this.place, name))));
  }

  async write(name: string, bytes: Uint8Array): Promise<void> {
    this.#check();
    const path = join(this.place, name);
    const draft = `${path}.${process.pid}-${randomBytes(4).toString("hex")}${DRAFT}`;
    await this.#guarded(async () => {
      await makeFolder(dirname(path));
      await replaceFile(path, bytes, { key: name, attempt: 1, signal: NEVER, draft, ...this.#how });
    });
  }

  async remove(name: string): Promise<void> {
    this.#check();
    await this.#guarded(() => removeFile(join(this.place, name), this.#how));
  }

  async list(below: string): Promise<string[]> {
    const names = await this.#guarded(() => filesIn(join(this.place, below), `${below}/`));
    return names.filter((name) => !isDraft(name));
  }

  /** Whoever has lost the directory must not write into what its successor works on. */
  #check(): void {
    if (!this.#lock.isHeld || !this.#lock.isStillOurs) throw busy(this.place, this.#worker);
  }

  async #removeDrafts(): Promise<void> {
    // Other folders are not ours: an agent may work there.
    const entries = await readdir(this.place, { withFileTypes: true });
    const names = entries.flatMap((entry) => (entry.isFile() ? [entry.name] : []));
    for (const below of OWN_FOLDERS) names.push(...(await filesIn(join(this.place, below), `${below}/`)));
    for (const name of names) if (isDraft(name)) await rm(join(this.place, name), { force: true });
  }

  async #guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw unavailable(error);
    }
  }
}

/** The refusal of a second worker (E-10): nothing was changed, and this is who has the directory. */
function busy(path: string, worker: string): PawlError {
  const owner = readOwner(path);
  const isKnown = owner !== null && owner.released_at === undefined;
  const who = isKnown ? `process ${owner.pid} on ${owner.host}, since ${owner.since}` : "another process";
  const { pid, host, since, number } = isKnown ? owner : {};
  return new PawlError(
    "worker_directory_busy",
    `The directory ${path} of worker "${worker}" belongs to ${who}, and one process at a time may work on it. Stop that process, or use another worker's name.`,
    { fields: { path, worker, owner: isKnown ? { pid, host, since, number } : null } },
  );
}

function isDraft(name: string): boolean {
  return name.endsWith(DRAFT);
}

/** The files of a folder and those below it, with "/" between the parts of a name. */
async function filesIn(folder: string, prefix: string): Promise<string[]> {
  const entries = (await unlessMissing(readdir(folder, { withFileTypes: true }))) ?? [];
  const names: string[] = [];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.isDirectory()) names.push(...(await filesIn(join(folder, entry.name), `${prefix}${entry.name}/`)));
    else if (entry.isFile()) names.push(prefix + entry.name);
  }
  return names;
}
