// SIGKILL at every point around a transaction, and workers that freeze inside one: the user's row is there exactly once, and the run's result
// agrees with it (I7).
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { Pawl, type Workflow } from "../../src/index.ts";
import { loadDriver as loadPg, type PgClient } from "../../src/stores/postgres/driver.ts";
import { postgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { loadDriver as loadSqlite } from "../../src/stores/sqlite/driver.ts";
import { sqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { Program } from "../child.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 300_000 });

const PROGRAM = fileURLToPath(new URL("./bank-process.mjs", import.meta.url));
const BANK: string = "./bank.mjs";
const { bank } = (await import(BANK)) as { bank: Workflow<{ table: string; gate?: string }, unknown> };
const PAID = { first: 1, second: 2, beside: "beside" };
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** Where the bank's runs and rows are. */
interface Place {
  readonly store: string;
  readonly schema?: string;
  readonly table: string;
  open(): Promise<Pawl>;
  /** Which of the run's payments have a row, and which have an outcome, both seen in one look. */
  look(run: string): Promise<{ rows: string[]; outcomes: string[] }>;
}

const children = new Set<Program>();

afterEach(async () => {
  for (const child of children) await child.kill();
  children.clear();
});

function child(place: Place, task: { run: string; kill?: object; lease?: string; gate?: string }): Program {
  const { store, schema, table } = place;
  const { run, gate, ...rest } = task;
  const input = { table, ...(gate !== undefined && { gate }) };
  const words = [process.execPath, PROGRAM, JSON.stringify({ store, schema, run: { id: run, input }, ...rest })];
  const program = new Program(words, { env: { ...process.env, NODE_OPTIONS: "" } });
  children.add(program);
  return program;
}

/** Kills a process at the n-th time that it reaches the point; another one finishes. False: there is no n-th time. */
async function killAt(place: Place, point: string, n: number): Promise<boolean> {
  const run = `${point.replace(" ", "-")}-${n}`;
  const program = child(place, { run, kill: { point, n } });
  const { code, signal } = await program.exited;
  expect([0, null], program.report()).toContain(code);
  const wreck = await place.look(run);
  expect(wreck.rows, `wreck of ${run}`).toEqual(wreck.outcomes);
  const pawl = await place.open();
  const finished = await pawl.start(bank, { table: place.table }, { id: run });
  expect(await finished.result(), run).toEqual(PAID);
  await pawl.close();
  expect(await place.look(run), run).toEqual({ rows: ["first", "second"], outcomes: ["first", "second"] });
  return signal === "SIGKILL";
}

/** Kills at each of the points, the first and the second time that it is reached; both transactions have it. */
async function killEverywhere(place: () => Promise<Place>, points: readonly string[]): Promise<void> {
  const rest = points.flatMap((point) => [1, 2].map((n) => ({ point, n })));
  const goOn = async () => {
    const here = await place();
    for (let next = rest.shift(); next !== undefined; next = rest.shift()) {
      expect({ ...next, wasKilled: await killAt(here, next.point, next.n) }).toEqual({ ...next, wasKilled: true });
    }
  };
  await Promise.all([goOn(), goOn()]);
}

describe("sqlite", () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-bank-"));
  let files = 0;

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function newPlace(): Promise<Place> {
    const file = join(folder, `${++files}.db`);
    const open = (at: string) =>
      Pawl.open(sqliteStore(at), { workflows: [bank], logger: SILENT, handleSignals: false });
    await (await Pawl.open(sqliteStore(file))).close();
    const db = loadSqlite().open(file);
    db.exec("create table accounts (who text primary key)");
    db.close();
    return {
      store: file,
      table: "accounts",
      open: () => open(file),
      async look(run) {
        const looking = loadSqlite().open(file);
        const rows = looking.prepare("select who from accounts where who like ? order by who").all(`${run} %`);
        const outcomes = looking
          .prepare(
            `select journal.key from journal join runs on runs.n = journal.run where runs.id = ? and type = 'step.completed'
              and journal.key <> 'beside' order by journal.key`,
          )
          .all(run);
        looking.close();
        return {
          rows: rows.map(({ who }) => String(who).slice(run.length + 1)),
          outcomes: outcomes.map(({ key }) => String(key)),
        };
      },
    };
  }

  it("I7 I1 I2 S0-18 S0-20 killed before and after its SQL and around every transaction of the store, each row is there once", async () => {
    await killEverywhere(newPlace, ["before-sql", "after-sql"]);
    const place = await newPlace();
    for (const point of ["before-commit", "after-commit"]) {
      let n = 1;
      while (await killAt(place, point, n)) n++;
      expect(n).toBeGreaterThan(4);
    }
  });
});

describe("postgres", () => {
  let admin: PgClient;
  let schemas = 0;

  beforeAll(async () => {
    admin = (await loadPg()).client({ connectionString: inject("postgresUrl") });
    await admin.connect();
  });

  afterAll(async () => {
    for (let n = 1; n <= schemas; n++) await admin.query({ text: `drop schema bank_${process.pid}_${n} cascade` });
    await admin.end();
  });

  async function newPlace(): Promise<Place> {
    const store = inject("postgresUrl");
    const schema = `bank_${process.pid}_${++schemas}`;
    const table = `${schema}.accounts`;
    const open = () =>
      Pawl.open(postgresStore(store, { schema }), { workflows: [bank], logger: SILENT, handleSignals: false });
    await (await open()).close();
    await admin.query({ text: `create table ${table} (who text primary key)` });
    return {
      store,
      schema,
      table,
      open,
      async look(run) {
        const { rows } = await admin.query({
          text: `select (select array_agg(substr(who, $2) order by who) from ${table} where who like $1 || ' %') as rows,
            (select array_agg(journal.key order by journal.key) from ${schema}.journal join ${schema}.runs on runs.n = journal.run
              where runs.id = $1 and type = 'step.completed' and journal.key <> 'beside') as outcomes`,
          values: [run, run.length + 2],
        });
        const [row] = rows as unknown as { rows: string[] | null; outcomes: string[] | null }[];
        return { rows: row?.rows ?? [], outcomes: row?.outcomes ?? [] };
      },
    };
  }

  it("I7 I1 I2 S0-18 S0-20 P22 killed before, in and after every statement of it, each row is there once", async () => {
    const around = ["before begin", "sent insert", "answered insert"];
    const atItsEnd = ["before last", "sent last", "answered last", "before commit", "sent commit", "answered commit"];
    await killEverywhere(newPlace, [...around, ...atItsEnd]);
  });

  it("B31 P22 I7 I8 a worker that freezes inside its transaction blocks nobody: another pays, and the frozen one adopts that", async () => {
    const place = await newPlace();
    const frozen = child(place, { run: "b31", lease: "2s", gate: "one" });
    await waitFor(async () => (await lockedRows(place.table)) > 0);
    frozen.process.kill("SIGSTOP");
    const other = child(place, { run: "b31", lease: "2s", gate: "one" });
    other.tell("one");
    expect(await resultOf(other)).toEqual(PAID);
    frozen.process.kill("SIGCONT");
    frozen.tell("one");
    expect(await resultOf(frozen)).toEqual(PAID);
    expect(await place.look("b31")).toEqual({ rows: ["first", "second"], outcomes: ["first", "second"] });
  });

  /** Transactions that have written to the table and are still open. */
  async function lockedRows(table: string): Promise<number> {
    const { rows } = await admin.query({
      text: "select count(*)::int as n from pg_locks where relation = $1::regclass and mode = 'RowExclusiveLock'",
      values: [table],
    });
    return rows[0]?.["n"] as number;
  }
});

async function resultOf(program: Program): Promise<unknown> {
  const found = await program.until(() => {
    const said = program.lines.map((line) => JSON.parse(line) as { event: string; output?: unknown; error?: unknown });
    return said.find(({ event }) => event === "result");
  });
  return found.output ?? found.error;
}

async function waitFor(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue()));
}
