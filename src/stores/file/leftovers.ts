// What is left of runs that were purged and still counts: what they had added to counters, and their starts of rates. It is in `store.json`, which
// also marks a directory as a store.
import { readFileSync } from "node:fs";
import { readProperty } from "../../base/errors.ts";
import { checksumOf } from "./canonical.ts";
import { unavailable } from "./disk.ts";
import { FORMAT, leftoversShape } from "./document-shape.ts";
import { checkFile } from "./read-document.ts";
import type { BegunRun } from "./run-document.ts";

export interface Leftovers {
  readonly counters: Map<string, number>;
  readonly starts: readonly BegunRun[];
  /** Checksums of documents whose part is in here: if one of them is still among the runs, it is about to be purged. */
  readonly absorbed: readonly string[];
}

export function emptyLeftovers(): Leftovers {
  return { counters: new Map(), starts: [], absorbed: [] };
}

/** `null`: there is no such file. */
export function readLeftovers(file: string): Leftovers | null {
  const text = textOf(file);
  if (text === null) return null;
  const found = checkFile(file, text, leftoversShape) as unknown as {
    readonly counters: Readonly<Record<string, number>>;
    readonly starts: readonly BegunRun[];
    readonly absorbed: readonly string[];
  };
  return { counters: new Map(Object.entries(found.counters)), starts: found.starts, absorbed: found.absorbed };
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (readProperty(error, "code") === "ENOENT") return null;
    throw unavailable(error);
  }
}

export function leftoversText({ counters, starts, absorbed }: Leftovers): string {
  const value = { format: FORMAT, counters: Object.fromEntries(counters), starts, absorbed };
  return `${JSON.stringify({ ...value, checksum: checksumOf(value) }, null, 2)}\n`;
}
