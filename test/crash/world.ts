// One history's world: a folder with a store and a ledger, and what can be read there after the processes are dead.
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach } from "vitest";
import type { LedgerLine } from "../../examples/fakes.ts";
import { type Entry, Pawl, type RunStatus, sqliteStore } from "../../src/index.ts";
import { type EngineTask, killAll, live } from "./child.ts";

const folders: string[] = [];

export function example(name: string): string {
  return fileURLToPath(new URL(`../../examples/${name}/workflow.ts`, import.meta.url));
}

export function testWorkflows(): string {
  return fileURLToPath(new URL("./workflows.mjs", import.meta.url));
}

afterEach(killAll);

afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A run as the store holds it. */
export interface Remains {
  readonly journal: readonly Entry[];
  readonly status: RunStatus | null;
  readonly claims: number | null;
  readonly orphans: readonly unknown[];
}

export class World {
  readonly folder: string = mkdtempSync(join(tmpdir(), "pawl-crash-"));
  readonly store: string = join(this.folder, "pawl.db");
  readonly #ledger = join(this.folder, "ledger.jsonl");

  constructor() {
    folders.push(this.folder);
  }

  get env(): Record<string, string> {
    return { LEDGER: this.#ledger };
  }

  live(task: Omit<EngineTask, "store">, env: Readonly<Record<string, string>> = {}): ReturnType<typeof live> {
    return live({ ...task, store: this.store }, { ...this.env, ...env });
  }

  ledger(): LedgerLine[] {
    if (!existsSync(this.#ledger)) return [];
    const lines = readFileSync(this.#ledger, "utf8").split("\n").filter(Boolean);
    return lines.map((line) => JSON.parse(line) as LedgerLine);
  }

  /** Reads a copy, so that whoever comes next finds the files as the dead process has left them. */
  async remains(run: string): Promise<Remains> {
    if (!existsSync(this.store)) return { journal: [], status: null, claims: null, orphans: [] };
    const copy = mkdtempSync(join(this.folder, "copy-"));
    for (const suffix of ["", "-wal"]) {
      if (existsSync(this.store + suffix)) copyFileSync(this.store + suffix, join(copy, `pawl.db${suffix}`));
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

/** Every n from 1 on, a few at a time, until `tryOne` says that there is nothing at this n any more. Returns how many there were. */
export async function everyPoint(atOnce: number, tryOne: (n: number) => Promise<boolean>): Promise<number> {
  let next = 1;
  let last = Number.POSITIVE_INFINITY;
  const worker = async () => {
    while (next < last) {
      const n = next++;
      if (!(await tryOne(n))) last = Math.min(last, n);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return last - 1;
}
