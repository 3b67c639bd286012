import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StoredEntry } from "../src/core/journal.ts";
import type { NewRun } from "../src/core/store.ts";
import { type Entry, memoryStore, Pawl, type RunSummary, sqliteStore, type Workflow } from "../src/index.ts";
import { exportRun, replay } from "../src/testing/index.ts";
import { workflows as features } from "./golden/0.1.0/features.ts";
import { workflows } from "./golden/0.1.0/workflows.ts";
import { clockFrom, FROZEN_STORES, type FrozenStore, goldenFile, loadFrozen, schemaOfFile } from "./golden-stores.ts";

const ELEVEN_YEARS = 11 * 365.25 * 86_400_000;
const PATIENCE = { timeout: 20_000 };
const SCHEDULE = "pawl.schedule";

describe.each(FROZEN_STORES)("the %s store of release 0.1.0", (kind) => {
  let frozen: FrozenStore;

  beforeAll(async () => {
    frozen = await loadFrozen("0.1.0", kind);
  });
  afterAll(() => frozen.leave());

  const open = (time: number, workflows: readonly Workflow<never, unknown>[] = []) =>
    Pawl.open(frozen.open(clockFrom(time)), {
      workflows,
      retention: false,
      lease: "1s",
      handleSignals: false,
      logger: SILENT,
    });

  it("I23 reads the same: runs, schedules, and every journal byte for byte", async () => {
    const pawl = await open(frozen.frozenAt);
    const { runs } = await pawl.list({ limit: 1000 });
    const read = runs.map(async ({ id, key, workflow, state }) => {
      return { id, key, workflow, state, journal: await pawl.store.journal(id) };
    });
    expect(await Promise.all(read)).toEqual(frozen.runs);
    expect(JSON.parse(JSON.stringify(await pawl.schedules()))).toEqual(frozen.schedules);
    await pawl.close();
  });

  it("I5 I23 every run is replayed by the code of today", async () => {
    const pawl = await open(frozen.frozenAt);
    const withBody = frozen.runs.filter(({ workflow }) => workflow !== SCHEDULE);
    expect(withBody.length).toBeGreaterThanOrEqual(30);
    for (const { id, key, workflow } of withBody) {
      const code = features.find(({ name }) => name === workflow);
      if (code === undefined) throw new Error(`${workflow} is not among the frozen workflows`);
      const { ok, message } = await replay(code, await exportRun(pawl, id));
      expect(ok, `${key}: ${message}`).toBe(true);
    }
    await pawl.close();
  });

  it("I23 I10 what was under way goes on: the dead process is taken over, mail is read, and what sleeps wakes when it is time", async () => {
    const present = await open(frozen.frozenAt, features);
    await endWhatCan(present, frozen);
    await present.close();
    const later = await open(frozen.frozenAt + ELEVEN_YEARS, features);
    await endWhatSlept(later, frozen);
    expect(await later.store.orphans()).toEqual([]);
    const { runs } = await later.list({ limit: 1000 });
    const unfinished = runs.filter(({ workflow, endedAt }) => workflow !== SCHEDULE && endedAt === null);
    expect(unfinished.map(({ key, state }) => ({ key, state }))).toEqual([]);
    await later.close();
    const entries = await frozen.query("select entry from golden_ledger order by entry");
    expect(entries.map(({ entry }) => entry)).toEqual([
      "booked: first",
      "booked: second",
      "booking: first",
      "booking: second",
    ]);
  }, 60_000);

  // A migration is never edited once it is released: databases that have been through it would not notice. If 0.1.0 is not released yet,
  // `npm run freeze -- --again` freezes it anew; if it is, the change belongs into the next migration, and functions get new names.
  it("I23 migrated to today's schema, it is the same as a new one: tables, indexes and functions", async () => {
    const store = frozen.open(clockFrom(frozen.frozenAt));
    await store.open();
    await store.close();
    const [migrated, fresh] = [await frozen.schema(), await frozen.freshSchema()];
    expect(fresh.size).toBeGreaterThan(20);
    expect(Object.fromEntries(migrated)).toEqual(Object.fromEntries(fresh));
  });
});

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

type Result = readonly [key: string, result: unknown];

/** Runs by their keys. */
function idsOf(frozen: FrozenStore): (key: string) => string {
  const ids = new Map(frozen.runs.map(({ key, id }) => [key, id]));
  return (key) => ids.get(key) ?? `no run has the key ${key}`;
}

async function endWhatCan(pawl: Pawl, frozen: FrozenStore): Promise<void> {
  const id = idsOf(frozen);
  const send = (key: string, name: string, payload: unknown) => pawl.signal(id(key), name, payload);
  await send("waiting", "go", { ok: true });
  await send("booking", "go", "go");
  await send("letters", "two", 2);
  for (const next of [2, 3]) await send("generations", "next", next);
  const grows = (await pawl.list({ workflow: "golden-grows" })).runs;
  for (const run of grows) await pawl.signal(run.id, "grown", 5);
  await pawl.resolve(id("parked"), { choice: "complete", value: "seen" });
  const enlisted: Result[] = pawl.store.kind === "postgres" ? [["enlisted", 16]] : [];
  await expectResults(pawl, id, [
    ["held", ["before", "attempt 2"]],
    ["parked", "seen"],
    ["decided", "it happened"],
    ["first-in-line", "attempt 2"],
    ["in-line-1", "done"],
    ["in-line-2", "done"],
    ["parent", { called: 6, spawned: "string" }],
    ["booked", ["booked: first", "now", "booked: second"]],
    ["booking", ["booking: first", "go", "booking: second"]],
    ["letters", [1, 2]],
    ["generations", 3],
    ["loops", 3],
    ["rated-1", 1],
    ["ready", 8],
    ...enlisted,
  ]);
  expect((await Promise.all(grows.map((run) => pawl.get(run.id).result()))).toSorted()).toEqual([15, 6]);
  expect(await pawl.get(id("large")).result()).toMatchObject({
    page: 10_000,
    letter: 10_000,
    bytes: new Uint8Array([0, 1, 254, 255]),
  });
  const { dice: _d, id: _i, ...done } = (await pawl.get(id("done")).result()) as Record<string, unknown>;
  expect(await pawl.get(id("waiting")).result()).toMatchObject({ ...done, label: "waiting" });
  await expect(pawl.get(id("fails")).result()).rejects.toThrow("always");
  await expect(pawl.get(id("cancelled")).result()).rejects.toThrow("not needed any more");
  await expect(pawl.get(id("unheard")).result()).rejects.toThrow("nobody is there");
  await expectTick(pawl);
}

/** A schedule that was paused goes on. */
async function expectTick(pawl: Pawl): Promise<void> {
  const lastSlot = async () =>
    (await pawl.schedules()).find(({ name }) => name === "seconds")?.lastSlot?.getTime() ?? 0;
  const before = await lastSlot();
  await pawl.resumeSchedule("seconds");
  await expect.poll(lastSlot, PATIENCE).toBeGreaterThan(before);
  await pawl.unschedule("seconds");
}

async function endWhatSlept(pawl: Pawl, frozen: FrozenStore): Promise<void> {
  const id = idsOf(frozen);
  await expectResults(pawl, id, [
    ["sleeping", "after"],
    ["retrying", 2],
    ["delayed", 42],
    ["rated-2", 2],
  ]);
  const burst = frozen.runs.find(({ key, workflow }) => key === null && workflow === "golden-doubles");
  expect(await pawl.get(burst?.id ?? "").result()).toBe(4);
  const ofSchedule = async (): Promise<RunSummary[]> =>
    (await pawl.list({ tag: "schedule:new-year" })).runs as RunSummary[];
  await expect
    .poll(async () => (await ofSchedule()).filter(({ state }) => state === "succeeded").length, PATIENCE)
    .toBe(11);
}

async function expectResults(pawl: Pawl, id: (key: string) => string, results: readonly Result[]): Promise<void> {
  const found = results.map(async ([key]): Promise<Result> => [key, await pawl.get(id(key)).result()]);
  expect(await Promise.all(found)).toEqual(results);
}

describe("the SQLite store of release 0.1.0 whose schema has version 1", () => {
  let folder = "";

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "pawl-golden-"));
    await copyFile(goldenFile("0.1.0", "store.db"), join(folder, "store.db"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it("I23 is migrated, its waiting runs go on and its finished ones read the same", async () => {
    // As of a moment at which nothing that it waits for was over.
    const clock = clockFrom(Math.max(...(await firstJournals()).flatMap(({ journal }) => journal.map(({ at }) => at))));
    const store = sqliteStore(join(folder, "store.db"), { clock });
    const pawl = await Pawl.open(store, { workflows, retention: false });
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
    const fresh = sqliteStore(join(folder, "fresh.db"));
    await fresh.open();
    await fresh.close();
    const schemas = ["store.db", "fresh.db"].map((file) => Object.fromEntries(schemaOfFile(join(folder, file))));
    expect(schemas[0]).toEqual(schemas[1]);
  });
});

interface FirstRun {
  readonly id: string;
  readonly workflow: string;
  readonly journal: readonly StoredEntry[];
}

async function firstJournals(): Promise<FirstRun[]> {
  return JSON.parse(await readFile(goldenFile("0.1.0", "journals.json"), "utf8")) as FirstRun[];
}

it("I5 I23 B59 every finished journal of release 0.1.0, its end withheld, is replayed to the same end", async () => {
  const finished = (await firstJournals()).filter(({ journal }) =>
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
