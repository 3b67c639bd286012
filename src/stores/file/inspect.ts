// What can be said about the directory itself, and a copy of it.
import { cpSync, existsSync, lstatSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { PawlError } from "../../base/errors.ts";
import type { StoreReport } from "../../core/store.ts";
import { blockedError } from "./blocked.ts";
import type { Directory } from "./directory.ts";
import { DRAFT_SUFFIX, quietly, unavailable } from "./disk.ts";
import { FORMAT } from "./document-shape.ts";
import type { FoundDocument } from "./read-document.ts";
import { DOCUMENT } from "./read-document.ts";

/** Unless it is `quick`, every document is read from the disk again, whatever is in memory. */
export function inspect(directory: Directory, quick = false): StoreReport {
  const blocked = quick ? [...directory.look().blocked.values()] : [...directory.documents()].filter(isBlocked);
  const owner = directory.owner();
  const kept = directory.quarantine.list();
  return {
    store: "file",
    version: process.version,
    schema: FORMAT,
    settings: {
      path: directory.path,
      durability: directory.disk.durability,
      runs: directory.folders().length,
      ...(quick ? {} : { bytes: bytesOf(directory), leftovers: leftoversIn(directory) }),
      mail: directory.mail.read().letters.length,
      archived: countIn(directory.archive),
      quarantined: kept.length,
      ...(owner?.isThere === true && {
        locked_by: owner.owner.pid,
        locked_on: owner.owner.host,
        locked_since: owner.owner.since,
      }),
    },
    faults: [...blocked.map((found) => blockedError(found).message), ...directory.troubles],
  };
}

function isBlocked(found: FoundDocument): found is Exclude<FoundDocument, { readonly kind: "sound" }> {
  return found.kind !== "sound";
}

function bytesOf(directory: Directory): number {
  const sizes = directory
    .folders()
    .map((folder) => lstatSync(join(directory.runs, folder, DOCUMENT), { throwIfNoEntry: false })?.size ?? 0);
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Drafts of writes that were cut off; the next process that writes removes them. */
function leftoversIn(directory: Directory): number {
  const folders = [directory.path, ...directory.folders().map((folder) => join(directory.runs, folder))];
  return folders.flatMap((folder) => namesIn(folder)).filter((name) => name.endsWith(DRAFT_SUFFIX)).length;
}

function countIn(folder: string): number {
  return namesIn(folder).length;
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** Copies the documents while nobody writes: a directory that is a store, and goes on from this moment. */
export function backup(directory: Directory, copy: string): void {
  directory.own("A backup");
  if (existsSync(copy))
    throw new PawlError(
      "invalid_argument",
      `The backup ${copy} exists already. Give a new name; nothing was written.`,
      { fields: { file: copy } },
    );
  const unfinished = `${copy}.unfinished`;
  directory.disk.remove(unfinished);
  directory.disk.makeFolder(dirname(copy));
  try {
    directory.disk.makeFolder(unfinished);
    for (const name of ["store.json", "runs", "operators"]) {
      if (existsSync(join(directory.path, name)))
        cpSync(join(directory.path, name), join(unfinished, name), { recursive: true });
    }
    directory.disk.syncAll(unfinished);
    directory.disk.move(unfinished, copy);
  } catch (error) {
    quietly(() => directory.disk.remove(unfinished));
    throw unavailable(error);
  }
}
