import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import type { StoredEntry } from "../src/core/journal.ts";
import type { NewRun } from "../src/core/store.ts";
import { type Entry, memoryStore, Pawl } from "../src/index.ts";
import { workflows } from "./golden/0.1.0/workflows.ts";

const folders: string[] = [];

async function frozenStore(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-golden-"));
  folders.push(folder);
  await copyFile(new URL("./golden/0.1.0/store.db", import.meta.url), join(folder, "store.db"));
  return join(folder, "store.db");
}

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

it("I23 a store of release 0.1.0 opens, its waiting runs go on and its finished ones read the same", async () => {
  const pawl = await Pawl.open(await frozenStore(), { workflows, retention: false });
  const runs = new Map((await pawl.list()).runs.filter((run) => run.key !== null).map((run) => [run.key, run]));
  expect([...runs.keys()].sort()).toEqual(["done", "fails", "loops", "sleeping", "waiting"]);
  const done = (await pawl.get(runs.get("done")?.id ?? "").result()) as { label: string };
  const waiting = pawl.get(runs.get("waiting")?.id ?? "");
  await waiting.signal("go", { ok: true });
  const result = (await waiting.result()) as { label: string; dice: number; id: string };
  const { dice: _d, id: _i, ...same } = result;
  const { dice: _d2, id: _i2, ...frozen } = done as typeof result;
  expect(same).toEqual({ ...frozen, label: "waiting" });
  await expect(pawl.get(runs.get("fails")?.id ?? "").result()).rejects.toThrow("always");
  expect(await pawl.get(runs.get("loops")?.id ?? "").result()).toBe(3);
  expect((await pawl.get(runs.get("sleeping")?.id ?? "").status()).state).toBe("waiting");
  expect(await pawl.store.orphans()).toEqual([]);
  await pawl.close();
});

interface Frozen {
  readonly id: string;
  readonly workflow: string;
  readonly journal: readonly StoredEntry[];
}

it("I5 I23 B59 every finished journal of release 0.1.0, its end withheld, is replayed to the same end", async () => {
  const text = await readFile(new URL("./golden/0.1.0/journals.json", import.meta.url), "utf8");
  const finished = (JSON.parse(text) as Frozen[]).filter(({ journal }) =>
    /^run\.(succeeded|failed)$/.test(journal.at(-1)?.type ?? ""),
  );
  expect(finished.length).toBeGreaterThanOrEqual(4);
  for (const { id, workflow, journal } of finished) {
    const store = memoryStore();
    await store.open();
    const create: NewRun = {
      workflow,
      version: "1.0.0",
      traceId: "t",
      key: null,
      tags: [],
      priority: 0,
      parent: null,
      origin: null,
      deadline: null,
      claimed: false,
      readyAt: 0,
      codec: "json",
    };
    const verdicts = await store.commit({
      worker: null,
      runs: [{ run: id, head: 0, entries: journal.slice(0, -1), create }],
    });
    expect(verdicts).toEqual([{ run: id, kind: "applied" }]);
    const pawl = await Pawl.open(store, { workflows });
    const end = await lastEntry(pawl.get(id).events());
    expect({ type: end.type, data: (await store.journal(id)).at(-1)?.data }).toEqual({
      type: journal.at(-1)?.type,
      data: journal.at(-1)?.data,
    });
    await pawl.close();
  }
});

async function lastEntry(events: AsyncIterable<Entry>): Promise<Entry> {
  let last: Entry | undefined;
  for await (const event of events) last = event;
  if (last === undefined) throw new Error("a run has at least one entry");
  return last;
}
