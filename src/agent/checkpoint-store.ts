// The store of one worker's execution
// Whatever keeps whole documents under names can be one: a directory, a key-value server, an object store. The rules are here, once.
//
//   CS1. A new request is begun in an order that loses neither: what is there is archived, the request replaces the old one whole, and only then
//        are the old checkpoint and marker dropped (T-8). Whatever a crash leaves of that is told apart by the execution's id (CD1).
//   CS2. Incomplete means: a checkpoint without a marker. The checkpoint holds the final answer before the marker is set (T-12).
//   CS3. Nothing is destroyed: what is cleared is archived, what cannot be read is moved to quarantine with the reason.
//   CS4. With a history, a copy of each full checkpoint is written before the checkpoint itself: one damaged file loses nothing.
import { hasCode, PawlError } from "../base/errors.ts";
import { type StandardSchema, validate } from "../core/schema.ts";
import { sha256 } from "../files/atomic-file.ts";
import {
  applyDelta,
  type Checkpoint,
  checkpointBytes,
  deltaBytes,
  readCheckpoint,
  readRequest,
  requestBytes,
  type SavedRequest,
} from "./checkpoint-document.ts";

export type { Checkpoint, SavedRequest } from "./checkpoint-document.ts";

/** Where the documents of one worker are kept, under names such as "request.json" and "archive/7/request.json". */
export interface WorkerFolder {
  /** What people call it: a path, an address. */
  readonly place: string;
  /** Takes it for this process. Throws `worker_directory_busy` with the owner if another one has it. */
  open(): Promise<void>;
  /** Lets go of it. */
  close(): Promise<void>;
  /** `null`: there is none. Needs no ownership. */
  read(name: string): Promise<Uint8Array | null>;
  /** Replaces the document whole; durable when it resolves. */
  write(name: string, bytes: Uint8Array): Promise<void>;
  /** Removes the document; one that is not there is as good. */
  remove(name: string): Promise<void>;
  /** The names of all documents below this one, such as "archive", in order. Drafts are none. */
  list(below: string): Promise<string[]>;
}

/** What a worker has: nothing, a request without a checkpoint, one with it, or a finished execution. */
export type WorkerState = "empty" | "started" | "incomplete" | "completed";

export interface SaveOptions {
  /** Checkpoints are written with gzip. Default false. */
  readonly compress?: boolean;
  /** Only changed slices are written, and everything with every n-th checkpoint. Default: always everything. */
  readonly incremental?: { readonly fullEvery: number };
  /** How many checkpoints are kept beside the newest. Default 1: a copy of it. */
  readonly history?: number;
}

/** Where a checkpoint of the history is. */
export interface CheckpointReference {
  readonly execution: string;
  readonly attempt: number;
  readonly sequence: number;
}

/** A document of an execution that can be damaged. */
export type DocumentName = "request" | "checkpoint" | "delta";

export interface CheckpointStore {
  readonly place: string;
  open(): Promise<void>;
  close(): Promise<void>;
  state(): Promise<WorkerState>;
  /** A checkpoint is there, and no marker. */
  hasIncomplete(): Promise<boolean>;
  /** Begins an execution: what was there is archived first. */
  saveRequest(request: SavedRequest): Promise<void>;
  /** Notes on the request that it has failed for good; `null`: that it is tried again after all. */
  failRequest(reason: string | null): Promise<void>;
  /** `null`: there is none. Throws `corrupt_value` if it cannot be read, `schema_mismatch` if it does not fit. */
  loadRequest<T = unknown>(schema?: StandardSchema<unknown, T>): Promise<SavedRequest<T> | null>;
  /** The file that holds it is replaced whole. */
  saveCheckpoint(checkpoint: Checkpoint, options?: SaveOptions): Promise<void>;
  /** The newest of this request; with a reference, that one of the history. Throws `corrupt_value` with `fields.document`. */
  loadCheckpoint(reference?: CheckpointReference): Promise<Checkpoint | null>;
  /** Only after a checkpoint with the final answer. */
  markCompleted(): Promise<void>;
  /** Empties it: to the archive, with the reason, unless the store deletes. */
  clear(reason?: string): Promise<void>;
  /** Moves a document that cannot be used out of the way. Returns where to; `null`: there is none. */
  quarantine(document: DocumentName, reason: string): Promise<string | null>;
  /** Notes that this execution is about to change something outside for the first time; kept apart from checkpoints, which can be damaged. */
  noteEffect(execution: string): Promise<void>;
  hasEffect(execution: string): Promise<boolean>;
  /** The checkpoints of the history, the oldest first. */
  history(): Promise<CheckpointReference[]>;
  /** Removes all but the last executions of the archive, and the history of those that are gone. Returns how many. */
  prune(keep: number): Promise<number>;
}

export interface CheckpointStoreOptions {
  /** What becomes of cleared documents. Default `"archive"`. */
  readonly onClear?: "archive" | "delete";
}

const REQUEST = "request.json";
const CHECKPOINT = "checkpoint.json";
const DELTA = "checkpoint.delta.json";
const COMPLETED = "completed";
const EFFECTS = "effects";

const FILES: Readonly<Record<DocumentName, string>> = { request: REQUEST, checkpoint: CHECKPOINT, delta: DELTA };
/** In the order in which they are dropped. What is left of them after each is told apart from a new execution, or from one that goes on. */
const LEFTOVERS = [COMPLETED, DELTA, EFFECTS, CHECKPOINT];
const NOTHING = new Uint8Array(0);

/** The rules of a checkpoint store, over any place that keeps documents. */
export function checkpointStore(folder: WorkerFolder, options: CheckpointStoreOptions = {}): CheckpointStore {
  return new FolderStore(folder, options);
}

class FolderStore implements CheckpointStore {
  readonly #folder: WorkerFolder;
  readonly #onClear: "archive" | "delete";
  /** The last full checkpoint that this process wrote, and how many deltas since. */
  #base: { readonly checkpoint: Checkpoint; readonly deltas: number } | null = null;

  constructor(folder: WorkerFolder, { onClear = "archive" }: CheckpointStoreOptions) {
    this.#folder = folder;
    this.#onClear = onClear;
  }

  get place(): string {
    return this.#folder.place;
  }

  /** Takes it, and drops what an earlier owner was about to drop. */
  async open(): Promise<void> {
    await this.#folder.open();
    try {
      if ((await this.state()) === "started") await this.#dropLeftovers();
    } catch (error) {
      await this.#folder.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#base = null;
    await this.#folder.close();
  }

  async state(): Promise<WorkerState> {
    const request = await this.#readable(() => this.loadRequest());
    const checkpoint = await this.#readable(() => this.#newest());
    if (request === null && checkpoint === null) return "empty";
    if (checkpoint === null || isLeftOver(checkpoint, request)) return "started";
    return (await this.#has(COMPLETED)) ? "completed" : "incomplete";
  }

  async hasIncomplete(): Promise<boolean> {
    return (await this.state()) === "incomplete";
  }

  async saveRequest(request: SavedRequest): Promise<void> {
    await this.#archive();
    await this.#folder.write(REQUEST, requestBytes(request));
    await this.#drop(LEFTOVERS);
  }

  async failRequest(reason: string | null): Promise<void> {
    const request = await this.loadRequest();
    if (request === null) return;
    const { failure: _, ...rest } = request;
    await this.#folder.write(REQUEST, requestBytes(reason === null ? rest : { ...rest, failure: reason }));
  }

  async loadRequest<T = unknown>(schema?: StandardSchema<unknown, T>): Promise<SavedRequest<T> | null> {
    const bytes = await this.#folder.read(REQUEST);
    if (bytes === null) return null;
    const saved = of("request", () => readRequest(bytes, this.#path(REQUEST)));
    const request = await validate(schema, saved.request, `The request in ${this.#path(REQUEST)}`);
    return { ...saved, request: request as T };
  }

  async saveCheckpoint(checkpoint: Checkpoint, options: SaveOptions = {}): Promise<void> {
    const { compress = false, incremental, history = 1 } = options;
    const delta = incremental === undefined ? null : this.#deltaOf(checkpoint, incremental.fullEvery, compress);
    if (delta !== null) return this.#folder.write(DELTA, delta);
    const bytes = checkpointBytes(checkpoint, compress);
    if (history > 0) await this.#folder.write(historyName(checkpoint), bytes);
    await this.#folder.write(CHECKPOINT, bytes);
    this.#base = { checkpoint, deltas: 0 };
    if (history > 0) await this.#trimHistory(checkpoint.execution, history);
  }

  async loadCheckpoint(reference?: CheckpointReference): Promise<Checkpoint | null> {
    if (reference === undefined) return this.#ofThisRequest(await this.#newest());
    const name = historyName(reference);
    const bytes = await this.#folder.read(name);
    return bytes === null ? null : of("checkpoint", () => readCheckpoint(bytes, this.#path(name)));
  }

  async markCompleted(): Promise<void> {
    const checkpoint = await this.loadCheckpoint();
    if (checkpoint?.result === undefined) {
      throw new PawlError(
        "invalid_argument",
        `${this.place} cannot be marked as completed: its checkpoint holds no final answer. Save one with the result first.`,
        { fields: { place: this.place } },
      );
    }
    await this.#folder.write(COMPLETED, NOTHING);
  }

  async clear(reason = "It was cleared."): Promise<void> {
    // Whatever a crash leaves of this must not be taken up again by itself.
    await this.#readable(() => this.failRequest(reason));
    await this.#empty();
    this.#base = null;
  }

  async quarantine(document: DocumentName, reason: string): Promise<string | null> {
    const name = FILES[document];
    const bytes = await this.#folder.read(name);
    if (bytes === null) return null;
    const copy = `quarantine/${sha256(bytes).slice(0, 12)}-${name}`;
    await this.#folder.write(`${copy}.reason.txt`, new TextEncoder().encode(`${reason}\n`));
    await this.#folder.write(copy, bytes);
    await this.#folder.remove(name);
    this.#base = null;
    return this.#path(copy);
  }

  async noteEffect(execution: string): Promise<void> {
    await this.#folder.write(EFFECTS, new TextEncoder().encode(`${execution}\n`));
  }

  async hasEffect(execution: string): Promise<boolean> {
    const bytes = await this.#folder.read(EFFECTS);
    return bytes !== null && new TextDecoder().decode(bytes).trim() === execution;
  }

  async history(): Promise<CheckpointReference[]> {
    const names = await this.#folder.list("history");
    return names.flatMap((name) => referenceOf(name) ?? []).sort(inTime);
  }

  async prune(keep: number): Promise<number> {
    const archived = executionsOf(await this.#folder.list("archive"));
    const gone = archived.slice(0, Math.max(0, archived.length - keep));
    for (const name of await this.#folder.list("archive"))
      if (gone.includes(name.split("/")[1] ?? "")) await this.#folder.remove(name);
    const current = await this.#readable(() => this.loadRequest());
    const kept = new Set([
      ...archived.slice(gone.length),
      current === null || current === "unreadable" ? "" : current.execution,
    ]);
    for (const one of await this.history()) if (!kept.has(one.execution)) await this.#folder.remove(historyName(one));
    return gone.length;
  }

  #deltaOf(checkpoint: Checkpoint, fullEvery: number, compress: boolean): Uint8Array | null {
    const base = this.#base;
    if (base === null || base.checkpoint.execution !== checkpoint.execution || checkpoint.result !== undefined)
      return null;
    if (base.deltas + 1 >= fullEvery) return null;
    const bytes = deltaBytes(base.checkpoint, checkpoint, compress);
    if (bytes !== null) this.#base = { ...base, deltas: base.deltas + 1 };
    return bytes;
  }

  async #newest(): Promise<Checkpoint | null> {
    const bytes = await this.#folder.read(CHECKPOINT);
    if (bytes === null) return null;
    const base = of("checkpoint", () => readCheckpoint(bytes, this.#path(CHECKPOINT)));
    const delta = await this.#folder.read(DELTA);
    return (delta && of("delta", () => applyDelta(base, delta, this.#path(DELTA)))) ?? base;
  }

  async #ofThisRequest(checkpoint: Checkpoint | null): Promise<Checkpoint | null> {
    if (checkpoint === null) return null;
    return isLeftOver(checkpoint, await this.#readable(() => this.loadRequest())) ? null : checkpoint;
  }

  async #readable<T>(load: () => Promise<T>): Promise<T | "unreadable"> {
    try {
      return await load();
    } catch (error) {
      if (hasCode(error, "corrupt_value")) return "unreadable";
      throw error;
    }
  }

  async #has(name: string): Promise<boolean> {
    return (await this.#folder.read(name)) !== null;
  }

  async #empty(): Promise<void> {
    await this.#archive();
    await this.#drop([...LEFTOVERS, REQUEST]);
  }

  /** Brings to its end what a crash has left of a beginning or of a clearing. */
  async #dropLeftovers(): Promise<void> {
    const request = await this.#readable(() => this.loadRequest());
    const isRead = request !== null && request !== "unreadable";
    if (isRead && request.failure !== undefined && (await this.#has(CHECKPOINT))) return this.#empty();
    // That something was done outside by the execution that is to be started again must stay known, and what its copies lack.
    const isKnown = isRead && (await this.hasEffect(request.execution));
    await this.#drop(isKnown ? [COMPLETED, CHECKPOINT] : LEFTOVERS);
  }

  /** Copies, so that a crash in between leaves everything where it was. By the execution's id: the copy of a copy is the same one. */
  async #archive(): Promise<void> {
    if (this.#onClear === "delete") return;
    const request = await this.#folder.read(REQUEST);
    const saved = await this.#readable(() => this.loadRequest());
    const checkpoint = await this.#readable(() => this.#newest());
    const belongs = checkpoint !== null && !isOfAnother(checkpoint, saved) ? [CHECKPOINT, DELTA, COMPLETED] : [];
    const known = saved !== "unreadable" ? saved?.execution : undefined;
    const id = known ?? `unreadable-${sha256(request ?? NOTHING).slice(0, 12)}`;
    for (const name of [REQUEST, ...belongs]) {
      const bytes = await this.#folder.read(name);
      if (bytes !== null) await this.#folder.write(`archive/${id}/${name}`, bytes);
    }
  }

  async #drop(names: readonly string[]): Promise<void> {
    for (const name of names) if (await this.#has(name)) await this.#folder.remove(name);
  }

  async #trimHistory(execution: string, keep: number): Promise<void> {
    const mine = (await this.history()).filter((one) => one.execution === execution);
    for (const old of mine.slice(0, -keep)) await this.#folder.remove(historyName(old));
  }

  #path(name: string): string {
    return `${this.place}/${name}`;
  }
}

/** Another execution was begun, and a crash came before this was dropped; or it was given up, and the crash came in between. */
function isLeftOver(checkpoint: Checkpoint | "unreadable", request: SavedRequest | null | "unreadable"): boolean {
  if (request !== "unreadable" && request?.failure !== undefined) return true;
  return isOfAnother(checkpoint, request);
}

function isOfAnother(checkpoint: Checkpoint | "unreadable", request: SavedRequest | null | "unreadable"): boolean {
  if (checkpoint === "unreadable" || request === "unreadable" || request === null) return false;
  return checkpoint.execution !== request.execution;
}

function historyName({ execution, attempt, sequence }: CheckpointReference): string {
  return `history/${execution}/${attempt}-${sequence}.json`;
}

function referenceOf(name: string): CheckpointReference | null {
  const found = /^history\/([^/]+)\/(\d+)-(\d+)\.json$/.exec(name);
  if (found === null) return null;
  return { execution: found[1] ?? "", attempt: Number(found[2]), sequence: Number(found[3]) };
}

function inTime(a: CheckpointReference, b: CheckpointReference): number {
  if (a.execution !== b.execution) return a.execution < b.execution ? -1 : 1;
  // A fresh start of the same execution counts from 1 again.
  return a.attempt - b.attempt || a.sequence - b.sequence;
}

function executionsOf(names: readonly string[]): string[] {
  return [...new Set(names.map((name) => name.split("/")[1] ?? ""))].sort();
}

/** Says in an error which document it was. */
function of<T>(document: DocumentName, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof PawlError)) throw error;
    throw new PawlError(error.code, error.message, { fields: { ...error.fields, document }, cause: error.cause });
  }
}
