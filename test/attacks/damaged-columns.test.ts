// Whoever can write to the file (A7) may put anything into any column. Whatever it is: the store is refused, or the run is parked or named, and
// every run that it does not concern goes on to its end.
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ManualClock, manualClock } from "../../src/base/clock.ts";
import { PawlError } from "../../src/base/errors.ts";
import { doctor } from "../../src/client/doctor.ts";
import { Pawl } from "../../src/client/pawl.ts";
import type { Store } from "../../src/core/store.ts";
import { isTerminal } from "../../src/core/transition.ts";
import { workflow } from "../../src/core/workflow.ts";
import { type Database, loadDriver, type SqlValue } from "../../src/stores/sqlite/driver.ts";
import { migrate } from "../../src/stores/sqlite/schema.ts";
import { sqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { newWorker } from "../../src/testing/store-cases/case.ts";
import { HOUR, World } from "../behaviour/harness.ts";
import { readAll } from "../stream-text.ts";
import { silent } from "./rig.ts";

const START = Date.UTC(2026, 0, 1);
const SEED = Number(process.env["PAWL_SEED"] ?? 20_260_101);

const done = workflow("done", async (ctx) => {
  ctx.set("place", "end");
  ctx.cost({ usd: 1 });
  return ctx.step("work", ({ emit }) => {
    emit("working");
    return "done";
  });
});
const asleep = workflow("asleep", async (ctx) => {
  ctx.set("place", "bed");
  await ctx.sleep("1h");
  return "asleep";
});
const awaiting = workflow("awaiting", async (ctx) => ctx.waitFor("go"));
const child = workflow("child", async (ctx) => ctx.waitFor("go"));
const parent = workflow("parent", async (ctx) => ctx.call(child));
const WORKFLOWS = [done, asleep, awaiting, child, parent];

let folder: string;
let fixture: string;
let kid: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "pawl-columns-"));
  fixture = join(folder, "fixture.db");
  kid = await build(fixture);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Makes a store with a run in every situation, and closes it. Returns the id of the child. */
async function build(file: string): Promise<string> {
  const store = sqliteStore(file, { clock: manualClock(START), leaseClock: manualClock(), durability: "process" });
  const pawl = await Pawl.open(store, { workflows: WORKFLOWS, logger: silent, handleSignals: false });
  await pawl.run(done, undefined, { id: "done", key: "k", tags: ["t"] });
  for (const flow of [asleep, awaiting, parent]) await pawl.start(flow, undefined, { id: flow.name, tags: ["t"] });
  await pawl.signal("awaiting", "other", { unread: true });
  await pawl.idle();
  const [called] = (await pawl.list({ parent: "parent" })).runs;
  await pawl.close();
  const client = await Pawl.open(store, { logger: silent, handleSignals: false });
  for (const id of ["ready", "held"]) await client.start(done, undefined, { id });
  await store.register(newWorker("ghost", { handles: [{ workflow: "done", version: "1.0.0" }] }));
  await store.hold("done", { who: "ada", why: "a question is open" });
  await store.describe([{ name: "done", version: "1.0.0", facts: JSON.stringify({ owners: {}, retention: null }) }]);
  const audit = { who: "ada", action: "run.hold", subject: "done", from: null, payload: null, detail: null } as const;
  for (let n = 0; n < 2; n++) await store.record({ ...audit, outcome: "done" });
  await client.close();
  using(file, (db) => {
    db.exec("update runs set owner = 'ghost', state = 'running', ready_at = null, claims = 1 where id = 'held'");
    db.exec("insert into counters values ('c', 1); insert into holds select n, 'c', 1 from runs where id = 'asleep'");
    db.exec("insert into starts select 'order', 9e15, n, 1 from runs where id = 'asleep'");
    db.exec("pragma wal_checkpoint(truncate)");
  });
  return called?.id ?? "";
}

function using<T>(file: string, use: (db: Database) => T): T {
  const db = loadDriver().open(file);
  try {
    return use(db);
  } finally {
    db.close();
  }
}

interface Column {
  readonly table: string;
  readonly column: string;
  readonly type: string;
}

/** Every column of every table of the newest schema. */
const COLUMNS: readonly Column[] = using(":memory:", (db) => {
  migrate(db, ":memory:");
  return db
    .prepare(
      "select tables.name as 'table', columns.name as 'column', columns.type as type from sqlite_schema as tables, pragma_table_info(tables.name) as columns where tables.type = 'table' order by 1, columns.cid",
    )
    .all() as unknown as Column[];
});
const TABLES = [...new Set(COLUMNS.map(({ table }) => table))];

const VALUES: Readonly<Record<string, fc.Arbitrary<SqlValue>>> = {
  null: fc.constant(null),
  integer: fc.oneof(
    fc.constantFrom<bigint[]>(-1n, 0n, 7n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)),
    fc.bigInt(-99n, 99n),
  ),
  real: fc.constantFrom(0.5, -1e300, 1e300, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
  text: fc.oneof(fc.constantFrom("", "{", "[1]", "null", "1.0.0", '[{"workflow":1}]'), fc.string({ unit: "binary" })),
  blob: fc.uint8Array({ maxLength: 20 }),
};

const damage = (table: string) =>
  fc.record({
    column: fc.constantFrom(...COLUMNS.filter((one) => one.table === table).map(({ column }) => column)),
    value: fc.oneof(...Object.values(VALUES)),
    row: fc.nat(),
  });

/** Changes one value of one row; returns the run that it belongs to, or "refused" if the schema does not take it. */
function spoil(file: string, table: string, column: string, row: number, value: SqlValue): string | null | "refused" {
  return using(file, (db) => {
    const rows = db.prepare(`select * from ${table}`).all();
    const target = rows[row % rows.length] as Record<string, SqlValue>;
    const keys = db
      .prepare(`pragma table_info(${table})`)
      .all()
      .filter(({ pk }) => Number(pk) > 0)
      .map(({ name }) => String(name));
    const where = keys.map((key) => `${key} = ?`).join(" and ");
    const n = table === "runs" ? target.n : target.run;
    const run = n === undefined ? null : db.prepare("select id from runs where n = ?").get(n)?.id;
    try {
      db.prepare(`update ${table} set ${column} = ? where ${where}`).run(
        value,
        ...keys.map((key) => target[key] as SqlValue),
      );
      return (run as string | undefined) ?? null;
    } catch {
      return "refused";
    }
  });
}

interface Opened {
  readonly store: Store;
  readonly clock: ManualClock;
  readonly leaseClock: ManualClock;
  readonly world: World;
  readonly pawl: Pawl;
}

async function open(file: string): Promise<Opened> {
  const [clock, leaseClock] = [manualClock(START), manualClock()];
  // Nobody else writes to the file, and a look for that every 50 ms is most of what the minutes here would take.
  const store: Store = {
    ...sqliteStore(file, { clock, leaseClock, durability: "process" }),
    hints: () => () => {},
  };
  await store.open();
  const world = new World(store, { ...clock, nextDue: () => Number.POSITIVE_INFINITY }, false);
  return { store, clock, leaseClock, world, pawl: await world.open(WORKFLOWS, { lease: "1 min" }) };
}

/** Two heartbeats and a round of housekeeping each. */
async function minutes({ leaseClock, world }: Opened, count: number): Promise<void> {
  for (let i = 0; i < 3 * count; i++) {
    leaseClock.advance(20_000);
    await world.settle();
  }
}

/** What a promise comes to; an error without a name of its own fails the test. */
async function named<T>(what: string, promise: Promise<T>): Promise<T | null> {
  try {
    return await promise;
  } catch (error) {
    if (!(error instanceof PawlError)) throw new Error(`${what} failed without a name`, { cause: error });
    return null;
  }
}

/** A copy of the fixture, alone in its folder. */
function freshCopy(): string {
  const file = join(folder, "case.db");
  for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
  copyFileSync(fixture, file);
  return file;
}

async function attack(table: string, column: string, row: number, value: SqlValue): Promise<void> {
  const file = freshCopy();
  const victim = spoil(file, table, column, row, value);
  fc.pre(victim !== "refused");
  await survive(file, victim, table);
}

async function survive(file: string, victim: string | null, table?: string): Promise<void> {
  const opened = await named("open", open(file));
  if (opened === null) return;
  try {
    if (table === "chunks") await named("stream", readAll(opened.pawl.get("done").stream()));
    await outlive(opened, victim);
  } finally {
    opened.world.kill(opened.pawl);
    await opened.store.close();
  }
}

async function outlive(opened: Opened, victim: string | null): Promise<void> {
  const { store, clock, world, pawl } = opened;
  const started = await named("start", pawl.start(done, undefined, { id: "new" }));
  const refused = new Set<string>();
  for (const id of ["awaiting", kid]) {
    const sent = await named(
      "signal",
      pawl.signal(id, "go", "x").then(() => true),
    );
    if (sent === null) refused.add(id);
  }
  await minutes(opened, 1);
  clock.advance(2 * HOUR);
  await minutes(opened, 2);
  const troubles = () => world.lines.filter(({ level }) => level === "warn" || level === "error");
  const before = troubles().length;
  await minutes(opened, 2);
  expect(troubles().slice(before), "what is said again and again").toEqual([]);

  const report = await named("doctor", doctor(store));
  const findings = report?.findings.map(({ message }) => message).join("\n") ?? "";
  for (const id of ["asleep", "awaiting", "parent", kid, "ready", "held", "new"]) {
    const run = await named(`run ${id}`, store.run(id));
    const isFamily = [victim, id].every((one) => one === "parent" || one === kid);
    const isUnhurt = id !== victim && !isFamily && (id !== "new" || started !== null);
    if (isUnhurt) expect([id, run?.state]).toEqual([id, "succeeded"]);
    // Gone under its name, or over, or waiting for a person, or told of; or its sender was told.
    if (id === victim && !refused.has(id) && run !== null && !isTerminal(run.state) && run.state !== "parked")
      expect(findings).toContain(id);
    await named(`status of ${id}`, pawl.get(id).status());
  }
  await named("list", pawl.list());
  await named("purge", store.purge({ succeededBefore: 9e15, failedBefore: 9e15, limit: 100 }));
}

it.each(TABLES)(
  "A7 B69 a damaged value in %s is refused or named, and no other run is held up",
  async (table) => {
    const columns = COLUMNS.filter((one) => one.table === table).length;
    await fc.assert(
      fc.asyncProperty(damage(table), ({ column, value, row }) => attack(table, column, row, value)),
      { seed: SEED, numRuns: 2 * columns, endOnFailure: true },
    );
  },
  // Other work may slow the machine down.
  120_000,
);

it("A7 a run whose version is none is named, and those that no worker has the version of are parked all the same", async () => {
  const file = freshCopy();
  using(file, (db) => {
    db.exec("update runs set version = '2' where id = 'ready'");
    db.exec("update runs set version = '9.0.0', line = '9.0' where id = 'asleep'");
  });
  const opened = await open(file);
  await minutes(opened, 10);
  expect((await opened.store.run("asleep"))?.state).toBe("parked");
  expect(opened.world.lines.filter(({ message }) => message.includes("Housekeeping failed"))).toEqual([]);
  expect((await doctor(opened.store)).findings.map(({ message }) => message).join("\n")).toContain("ready");
  opened.world.kill(opened.pawl);
  await opened.store.close();
});

it("A7 an entry that stands twice in a journal parks its run and no other", async () => {
  const file = freshCopy();
  using(file, (db) =>
    db.exec(`insert into journal select run, seq + 1, at, type, key, data, hash from journal
      where run = (select n from runs where id = 'asleep') order by seq desc limit 1`),
  );
  const opened = await open(file);
  await outlive(opened, "asleep");
  expect(await opened.store.run("asleep")).toMatchObject({ state: "parked" });
  opened.world.kill(opened.pawl);
  await opened.store.close();
});

it("A7 a file whose WAL was deleted is what it was before, with whole journals", async () => {
  const source = freshCopy();
  const { store, world, pawl } = await open(source);
  await pawl.run(done, undefined, { id: "in the WAL" });
  const file = join(folder, "without.db");
  copyFileSync(source, file);
  world.kill(pawl);
  await store.close();
  const opened = await open(file);
  await outlive(opened, null);
  expect(await opened.store.run("in the WAL")).toBeNull();
  expect((await doctor(opened.store)).journals.faults).toEqual([]);
  opened.world.kill(opened.pawl);
  await opened.store.close();
});

it("A7 the -shm of another machine changes nothing", async () => {
  const file = freshCopy();
  writeFileSync(`${file}-shm`, Buffer.alloc(32_768, 0xa5));
  await survive(file, null);
  expect(using(file, (db) => db.prepare("pragma quick_check").get())).toEqual({ quick_check: "ok" });
});
