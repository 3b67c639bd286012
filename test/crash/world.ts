// The world of a test: a folder with stores and the ledger of the outside, and what can be read there after the processes are dead.
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach } from "vitest";
import type { LedgerLine } from "../../examples/fakes.ts";
import { type Entry, Pawl, type RunStatus, sqliteStore } from "../../src/index.ts";
import { killAll } from "./child.ts";
import { compiled, removeCompiled } from "./compiled.ts";

const folders: string[] = [];

afterEach(killAll);

afterAll(() => {
  removeCompiled();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function example(name: string): string {
  return compiled(`${name}/workflow.ts`);
}

export const TEST_WORKFLOWS: string = fileURLToPath(new URL("./workflows.mjs", import.meta.url));

/** A run as its store holds it; nothing at all if it is not there. */
export interface Remains {
  readonly journal: readonly Entry[];
  readonly status: RunStatus | null;
  readonly claims: number | null;
  readonly orphans: readonly unknown[];
}

export class World {
  readonly folder: string = mkdtempSync(join(tmpdir(), "pawl-crash-"));
  readonly #ledger = join(this.folder, "ledger.jsonl");

  constructor() {
    folders.push(this.folder);
  }

  store(name = "pawl"): string {
    return join(this.folder, `${name}.db`);
  }

  get env(): Record<string, string> {
    return { LEDGER: this.#ledger };
  }

  ledger(): LedgerLine[] {
    if (!existsSync(this.#ledger)) return [];
    const lines = readFileSync(this.#ledger, "utf8").split("\n").filter(Boolean);
    return lines.map((line) => JSON.parse(line) as LedgerLine);
  }

  /** What the outside saw of one run. */
  seenOf(run: string): LedgerLine[] {
    return this.ledger().filter(({ key }) => key.startsWith(`${run}:`));
  }

  /** Reads a copy, so that whoever comes next finds the files as the dead process has left them. */
  async remains(run: string, name?: string): Promise<Remains> {
    const path = this.store(name);
    const copy = mkdtempSync(join(this.folder, "copy-"));
    for (const suffix of ["", "-wal"]) {
      if (existsSync(path + suffix)) copyFileSync(path + suffix, join(copy, `pawl.db${suffix}`));
    }
    const store = sqliteStore(join(copy, "pawl.db"));
    const pawl = await Pawl.open(store);
    try {
      const row = await store.run(run);
      const orphans = await store.orphans();
      if (row === null) return { journal: [], status: null, claims: null, orphans };
      const handle = pawl.get(run);
      return { journal: await handle.journal(), status: await handle.status(), claims: row.claims, orphans };
    } finally {
      await pawl.close();
      rmSync(copy, { recursive: true, force: true });
    }
  }
}

/** Tries every n from 1 on, some at once, until `tryOne` says that there is nothing at its n. Returns how many there were. */
export async function everyNumber(atOnce: number, tryOne: (n: number) => Promise<boolean>): Promise<number> {
  let next = 1;
  let end = Number.POSITIVE_INFINITY;
  const goOn = async () => {
    while (next < end) {
      const n = next++;
      if (!(await tryOne(n))) end = Math.min(end, n);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, goOn));
  return end - 1;
}

export async function inGroups<T>(
  items: readonly T[],
  size: number,
  work: (group: T[]) => Promise<void>,
): Promise<void> {
  const rest = [...items];
  const goOn = async () => {
    while (rest.length > 0) await work(rest.splice(0, size));
  };
  await Promise.all([goOn(), goOn()]);
}
