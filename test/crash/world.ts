// The world of a test: a folder with stores and the ledger of the outside, and what can be read there after the processes are dead.
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach } from "vitest";
import type { LedgerLine } from "../../examples/fakes.ts";
import { OWN_WORKFLOWS } from "../../src/core/own-workflows.ts";
import { type Entry, Pawl, type RunStatus, sqliteStore } from "../../src/index.ts";
import { coldStartAll, killAll } from "./child.ts";
import { compiled, removeCompiled } from "./compiled.ts";

const folders: string[] = [];

afterEach(async () => {
  await killAll();
  await coldStartAll();
}, 120_000);

afterAll(() => {
  removeCompiled();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function example(name: string): string {
  return compiled(`${name}/workflow.ts`);
}

export const TEST_WORKFLOWS: string = fileURLToPath(new URL("./workflows.mjs", import.meta.url));
export const TOUR: string = fileURLToPath(new URL("./tour.mjs", import.meta.url));

/** A line of the examples' outside world, or of book.mjs, which also says with what, and in which attempt. */
export interface Booked extends LedgerLine {
  readonly what?: unknown;
  readonly attempt?: number;
}

/** A run as its store holds it. */
export interface RunRemains {
  readonly id: string;
  readonly journal: readonly Entry[];
  readonly status: RunStatus | null;
  readonly claims: number | null;
}

/** What is left of one run, nothing at all if it is not there, and of every other run of its store. */
export interface Remains extends RunRemains {
  readonly others: readonly RunRemains[];
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

  ledger(): Booked[] {
    if (!existsSync(this.#ledger)) return [];
    const lines = readFileSync(this.#ledger, "utf8").split("\n").filter(Boolean);
    return lines.map((line) => JSON.parse(line) as Booked);
  }

  /** What the outside saw of one run, and of those that it started. */
  seenOf(run: string): Booked[] {
    return this.ledger().filter(({ key, about }) => about === run || stepOf(run, key) !== null);
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
      const rows = await store.runs({ limit: 100, except: OWN_WORKFLOWS });
      const all = await Promise.all(rows.map(({ id, claims }) => remainsOf(pawl, id, claims)));
      const own = all.find(({ id }) => id === run) ?? { id: run, journal: [], status: null, claims: null };
      return { ...own, others: all.filter(({ id }) => id !== run), orphans: await store.orphans() };
    } finally {
      await pawl.close();
      rmSync(copy, { recursive: true, force: true });
    }
  }
}

async function remainsOf(pawl: Pawl, id: string, claims: number): Promise<RunRemains> {
  const run = pawl.get(id);
  return { id, journal: await run.journal(), status: await run.status(), claims };
}

/** Which step of a run an idempotency key belongs to, and of which of its generations: `draw`, `1 visit`. `null` if it is another run's. */
export function stepOf(run: string, key: string): string | null {
  if (!key.startsWith(run)) return null;
  const [, generation, step = null] = /^(?:#(\d+))?\/(.+)$/.exec(key.slice(run.length)) ?? [];
  return generation === undefined ? step : `${generation} ${step}`;
}

/** Two groups at once. */
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
