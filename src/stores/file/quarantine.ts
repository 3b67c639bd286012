// Copies of what could not be read or was in the way, each with the reason beside it. Nothing is ever removed from here.
import { hash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Disk } from "./disk.ts";

export class Quarantine {
  readonly #folder: string;
  readonly #disk: Disk;

  constructor(folder: string, disk: Disk) {
    this.#folder = folder;
    this.#disk = disk;
  }

  /** Keeps a copy of a file. The same content is kept once, however often it is found. */
  keep(file: string, text: string, reason: string): void {
    const name = `${basename(dirname(file))}-${hash("sha256", text, "hex").slice(0, 12)}-${basename(file)}`;
    const copy = join(this.#folder, name);
    if (existsSync(copy)) return;
    this.#disk.replace([
      { path: `${copy}.reason.txt`, text: `${file}\n${reason}\n` },
      { path: copy, text },
    ]);
  }

  /** The names of the copies. */
  list(): string[] {
    if (!existsSync(this.#folder)) return [];
    return readdirSync(this.#folder)
      .filter((name) => name.endsWith(".json"))
      .sort();
  }
}
