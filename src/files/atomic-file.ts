// Files that are replaced whole
// What a reader finds is what was there before or all of what is there now, after a power cut as well.
//
//   F1. The new content is written and synced under a name of its own, then renamed; the rename is synced with its folder.
//   F2. No two attempts share a draft: one that was frozen while it wrote must not write into the file of its successor.
//   F3. A later attempt removes the drafts of earlier ones first. What a killed process has left is gone then, and a frozen one that
//       comes back finds nothing to rename.
import { createHash, randomBytes } from "node:crypto";
import {
  type FileHandle,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
} from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { readProperty } from "../base/errors.ts";
import type { StepInfo } from "../core/context.ts";

export type FileContent = string | Uint8Array;

/** An access to the disk, before it happens; throwing there is an error of the system at that point. For tests. */
export type Access = (point: "write" | "sync" | "rename" | "sync-folder" | "remove", path: string) => void;

/** What replaces a file must know of who does it. */
export interface Replacing extends Pick<StepInfo, "key" | "attempt" | "signal"> {
  /** Where the draft is written, if somebody else knows drafts by their names and removes them. */
  readonly draft?: string;
  readonly access?: Access;
  /** False: it survives the death of the process, and perhaps not a power cut. Default true. */
  readonly isSynced?: boolean;
}

/** Makes a folder and those above it, durably. */
export async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  const last = dirname(resolve(first));
  for (let folder = resolve(path); folder !== last; ) {
    folder = dirname(folder);
    await syncFolder(folder);
  }
}

/** Replaces the file, or makes it. Its permissions stay, and a link stays a link. */
export async function replaceFile(path: string, content: FileContent, info: Replacing): Promise<void> {
  const target = await targetOf(path);
  const folder = dirname(target);
  const prefix = `.pawl-${sha256(`${info.key}\n${target}`).slice(0, 16)}-`;
  if (info.attempt > 1) await removeDrafts(folder, prefix);
  const draft = info.draft ?? join(folder, prefix + randomBytes(6).toString("hex"));
  const { access = anyAccess, isSynced = true } = info;
  try {
    access("write", target);
    const beforeSync = () => {
      access("sync", target);
      return isSynced;
    };
    await writeDraft(draft, content, (await unlessMissing(stat(target)))?.mode ?? null, beforeSync);
    // Whoever has lost the run must not overwrite what its successor wrote.
    info.signal.throwIfAborted();
    access("rename", target);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  access("sync-folder", target);
  if (isSynced) await syncFolder(folder);
}

const anyAccess: Access = () => {};

/** Removes the file, durably; one that is not there is as good. */
export async function removeFile(path: string, how: Pick<Replacing, "access" | "isSynced"> = {}): Promise<void> {
  const { access = anyAccess, isSynced = true } = how;
  const target = await targetOf(path);
  access("remove", target);
  await rm(target, { force: true });
  access("sync-folder", target);
  if (isSynced) await syncFolder(dirname(target));
}

/** Where a path leads, over links that may lead to nothing yet. */
async function targetOf(path: string): Promise<string> {
  const real = await unlessMissing(realpath(path));
  if (real !== null) return real;
  const link = await readlink(path).catch(() => null);
  return link === null ? resolve(path) : targetOf(resolve(dirname(path), link));
}

/** What a file holds; `null`: there is none. Call it in a step, so that what it returns is recorded. */
export async function contentOf(path: string): Promise<Uint8Array | null> {
  return unlessMissing(readFile(path));
}

export function sha256(content: FileContent): string {
  return createHash("sha256").update(content).digest("hex");
}

async function removeDrafts(folder: string, prefix: string): Promise<void> {
  const names = await readdir(folder);
  for (const name of names) if (name.startsWith(prefix)) await rm(join(folder, name), { force: true });
}

async function writeDraft(
  path: string,
  content: FileContent,
  mode: number | null,
  beforeSync: () => boolean,
): Promise<void> {
  await using(await open(path, "wx"), async (file) => {
    if (mode !== null) await file.chmod(mode & 0o7777);
    await file.writeFile(content);
    if (beforeSync()) await file.sync();
  });
}

async function syncFolder(folder: string): Promise<void> {
  // Windows opens no folders; its file system keeps renames by itself.
  if (process.platform === "win32") return;
  await using(await open(folder, "r"), (handle) => handle.sync());
}

async function using(file: FileHandle, work: (file: FileHandle) => Promise<void>): Promise<void> {
  try {
    await work(file);
  } finally {
    await file.close();
  }
}

/** `null`: there is no such file. */
export async function unlessMissing<T>(looking: Promise<T>): Promise<T | null> {
  return looking.catch((error: unknown) => {
    if (readProperty(error, "code") === "ENOENT") return null;
    throw error;
  });
}
