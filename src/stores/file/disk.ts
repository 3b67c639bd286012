// Writing files so that a reader finds what was there before or all of what is there now, after a power cut as well.
//
//   D1. New content is written and synced under a name of its own, then renamed; the rename is synced with its folder.
//   D2. All drafts of one call are on the disk before the first of them gets its name: where there is no room, nothing has happened.
//   D3. They get their names one after the other, each durable before the next: what a crash leaves is a beginning of the list.
//   D4. What fails before the first rename has surely changed nothing. What fails after it is unknown.
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { PawlError, readProperty } from "../../base/errors.ts";

/** `power`: what was acknowledged survives power loss. `process`: it survives the death of the process only. */
export type Durability = "power" | "process";

export type FaultPoint = "append" | "folder" | "write" | "sync" | "rename" | "sync-folder" | "move" | "remove";

export interface DiskOptions {
  readonly durability: Durability;
  /** Called before each access; throwing there is an error of the system at that point. For tests. */
  readonly fault?: (point: FaultPoint, path: string) => void;
}

export interface NewContent {
  readonly path: string;
  readonly text: string;
}

interface Draft {
  readonly draft: string;
  readonly path: string;
}

export const DRAFT_SUFFIX = ".tmp";

export class Disk {
  readonly #options: DiskOptions;
  #drafts = 0;

  constructor(options: DiskOptions) {
    this.#options = options;
  }

  get durability(): Durability {
    return this.#options.durability;
  }

  /** Replaces files, or makes them with their folders, in this order; each is durable before the next. */
  replace(contents: readonly NewContent[]): void {
    const drafts: Draft[] = [];
    const made: string[] = [];
    let renamed = 0;
    try {
      for (const { path } of contents) this.#makeFolders(dirname(path), made);
      for (const { path, text } of contents) drafts.push(this.#write(path, text));
      for (const folder of new Set(made.map((one) => dirname(one)))) this.#syncFolder(folder);
      for (const { draft, path } of drafts) {
        this.#at("rename", path);
        renameSync(draft, path);
        renamed += 1;
        this.#syncFolder(dirname(path));
      }
    } catch (error) {
      for (const { draft } of drafts) quietly(() => rmSync(draft, { force: true }));
      // Only empty ones: whatever has got its name stays.
      for (const folder of made.reverse()) quietly(() => rmdirSync(folder));
      throw renamed === 0 ? unavailable(error) : unknown(error, contents[renamed - 1]?.path ?? "");
    }
  }

  /** Adds lines to a file, or makes it. What was cut off behind its last line is removed first; whatever fails may leave a part of a line again. */
  append(path: string, lines: string, isSynced: boolean): void {
    this.#guarded(() => {
      this.#at("append", path);
      const file = openSync(path, "a+");
      try {
        removeTornLine(file);
        writeAll(file, Buffer.from(lines));
        if (isSynced) this.#at("sync", path);
        if (isSynced && this.durability === "power") fsyncSync(file);
      } finally {
        closeSync(file);
      }
      if (isSynced) this.#syncFolder(dirname(path));
    });
  }

  /** Makes a folder and those above it, durably. */
  makeFolder(path: string): void {
    const made: string[] = [];
    this.#guarded(() => {
      this.#makeFolders(path, made);
      for (const folder of new Set(made.map((one) => dirname(one)))) this.#syncFolder(folder);
    });
  }

  /** Gives a folder another place, durably. */
  move(from: string, to: string): void {
    this.#guarded(() => {
      this.#at("move", from);
      renameSync(from, to);
      this.#syncFolder(dirname(to));
      this.#syncFolder(dirname(from));
    });
  }

  remove(path: string): void {
    this.#guarded(() => {
      this.#at("remove", path);
      rmSync(path, { force: true, recursive: true });
    });
  }

  /** Makes everything in a folder durable that was written in another way. */
  syncAll(path: string): void {
    if (this.durability !== "power") return;
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const inner = join(path, entry.name);
      if (entry.isDirectory()) this.syncAll(inner);
      else syncFile(inner);
    }
    this.#syncFolder(path);
  }

  #write(path: string, text: string): Draft {
    const draft = join(dirname(path), `${basename(path)}.${process.pid}-${++this.#drafts}${DRAFT_SUFFIX}`);
    this.#at("write", path);
    const file = openSync(draft, "wx");
    try {
      writeAll(file, Buffer.from(text));
      this.#at("sync", path);
      if (this.durability === "power") fsyncSync(file);
    } catch (error) {
      quietly(() => rmSync(draft, { force: true }));
      throw error;
    } finally {
      closeSync(file);
    }
    return { draft, path };
  }

  #makeFolders(path: string, made: string[]): void {
    if (existsSync(path)) return;
    if (dirname(path) !== path) this.#makeFolders(dirname(path), made);
    this.#at("folder", path);
    mkdirSync(path);
    made.push(path);
  }

  #syncFolder(path: string): void {
    this.#at("sync-folder", path);
    // Windows opens no folders; its file system keeps renames by itself.
    if (this.durability === "power" && process.platform !== "win32") syncFile(path);
  }

  #at(point: FaultPoint, path: string): void {
    this.#options.fault?.(point, path);
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      throw unavailable(error);
    }
  }
}

function syncFile(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

const NEWLINE = 10;
const STEP_BACK = 65_536;

function removeTornLine(file: number): void {
  const { size } = fstatSync(file);
  const bytes = Buffer.alloc(STEP_BACK);
  for (let end = size; end > 0; ) {
    const from = end === size ? end - 1 : Math.max(0, end - STEP_BACK);
    const last = bytes.subarray(0, readSync(file, bytes, 0, end - from, from)).lastIndexOf(NEWLINE);
    if (last >= 0) return from + last + 1 === size ? undefined : ftruncateSync(file, from + last + 1);
    end = from;
  }
  if (size > 0) ftruncateSync(file, 0);
}

function writeAll(file: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
}

export function quietly(work: () => void): void {
  try {
    work();
  } catch {
    // It was a courtesy: whoever needs the disk next finds out by itself.
  }
}

const MEANINGS: Readonly<Record<string, readonly [what: string, next: string]>> = {
  ENOSPC: ["the disk is full", "Free some space; nothing else is needed."],
  EDQUOT: ["the quota is used up", "Free some space; nothing else is needed."],
  EROFS: ["the disk is read-only", "Make it writable; nothing else is needed."],
  EACCES: ["this process may not write there", "Give it the right to write to the directory and everything in it."],
  EPERM: ["this process may not write there", "Give it the right to write to the directory and everything in it."],
  EMFILE: ["this process has too many files open", "Raise its limit (ulimit -n)."],
  ENFILE: ["the machine has too many files open", "Raise its limit."],
  EIO: ["the disk had an error", "Check the disk and the system log."],
  ENOTDIR: ["something that is no folder is in the way", "Give a path of which every part is a folder."],
};

/** An error of the system, when surely nothing was changed (E-27). What is an error of ours already stays as it is. */
export function unavailable(error: unknown): unknown {
  if (error instanceof PawlError) return error;
  const code = readProperty(error, "code");
  const path = readProperty(error, "path") ?? "";
  if (typeof code !== "string") return error;
  const [what, next] = MEANINGS[code] ?? [`the system answered ${code}`, "Check the directory."];
  return new PawlError(
    "storage_unavailable",
    `The directory of the store cannot be written to or read: ${what} (${code} at ${path}). ${next}`,
    { fields: { path, errno: code }, cause: error },
  );
}

function unknown(error: unknown, path: string): PawlError {
  return new PawlError(
    "unknown_outcome",
    `Writing to ${path} failed after a part had been written (${String(readProperty(error, "message"))}). Pawl reads the documents again before it goes on. If this repeats, check the disk and the system log.`,
    { fields: { path, errno: readProperty(error, "code") }, cause: error },
  );
}
