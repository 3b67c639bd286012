// What people do around the store that it did not expect: statements nobody waits for, transactions left open, names and databases at the edge.
import { afterAll, beforeAll, expect, inject, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import type { Sql } from "../../src/core/sql.ts";
import type { RunCommit, Store, TransactRequest, Verdict } from "../../src/core/store.ts";
import { Pawl, postgresStore } from "../../src/index.ts";
import { OwnedRuns } from "../../src/stores/owned-runs.ts";
import { commit } from "../../src/stores/postgres/commit.ts";
import { unavailable } from "../../src/stores/postgres/database-error.ts";
import { loadDriver, type PgClient } from "../../src/stores/postgres/driver.ts";
import { Link } from "../../src/stores/postgres/link.ts";
import type { PgPool } from "../../src/stores/postgres/pooled-client.ts";
import { Session } from "../../src/stores/postgres/sessions.ts";
import { StoreClock } from "../../src/stores/postgres/store-clock.ts";
import { RUNS_PER_PARTITION } from "../../src/stores/postgres/tables.ts";
import { transact } from "../../src/stores/postgres/transact.ts";
import { appending, apply, creation, entry, newWorker } from "../../src/testing/store-cases/case.ts";
import { emptyPostgresStore } from "../postgres-schemas.ts";

const PG: string = "pg";
const { default: pg } = (await import(PG)) as {
  default: { Pool: new (options: object) => PgPool & { end(): Promise<void> } };
};
const URL_OF_SERVER = inject("postgresUrl");
const TABLE = `edges_${process.pid}`;
const MIB = 1024 * 1024;
const SEALED: TransactRequest = { lane: 0, isolation: "read committed", timeoutMs: 5000, idleMs: 5000 };

let admin: PgClient;
let schemas = 0;

beforeAll(async () => {
  admin = await connect();
  await admin.query({ text: `create table ${TABLE} (what text not null)` });
});

afterAll(async () => {
  await admin.query({ text: `drop table ${TABLE}` });
  await admin.end();
});

async function connect(url = URL_OF_SERVER): Promise<PgClient> {
  const client = (await loadDriver()).client({ connectionString: url });
  await client.connect();
  return client;
}

async function openStore(): Promise<Store> {
  const { store, leave } = await emptyPostgresStore({});
  await store.open();
  await store.register(newWorker("w1"));
  onTestFinished(async () => {
    await store.close();
    leave();
  });
  return store;
}

/** The name of a schema that is dropped when the test is over. */
function newSchema(name = `edges_${process.pid}_${++schemas}`): string {
  onTestFinished(async () => {
    await admin.query({ text: `drop schema if exists "${name}" cascade` });
  });
  return name;
}

async function rowsOf(what: string): Promise<number> {
  const text = `select count(*)::int as n from ${TABLE} where what = $1`;
  return (await admin.query({ text, values: [what] })).rows[0]?.["n"] as number;
}

const insert = (sql: Sql, what: string) => sql.query(`insert into ${TABLE} values ($1)`, [what]);

it("I7 X-4 a statement that nobody waits for is part of the transaction, or refused: none lands behind its COMMIT", async () => {
  const store = await openStore();
  await apply(store, creation("r", { claimed: true }));
  let sent = 0;
  let refusal: unknown = null;
  let over!: Promise<void>;
  const verdict = await store.transact?.(SEALED, async (sql) => {
    over = (async () => {
      // Each is sent when the one before it was answered, and the last of them while COMMIT is under way.
      for (; refusal === null; sent++)
        await insert(sql, "stray").catch((error: unknown) => {
          refusal = error;
        });
    })();
    await insert(sql, "awaited");
    const commit = appending("r", 1, 1);
    return { worker: "w1", commit };
  });
  await over;
  expect(verdict).toEqual({ run: "r", kind: "applied" });
  expect(refusal).toMatchObject({ code: "transaction_failed" });
  // The last one that was sent is the refused one.
  expect(await rowsOf("stray")).toBe(sent - 1);
  const { rows } = await admin.query({ text: `select count(distinct xmin::text)::int as n from ${TABLE}` });
  expect(rows[0]?.["n"]).toBe(1);
});

it("P36 engines that open one store at the same moment share it", async () => {
  const store = postgresStore(URL_OF_SERVER, { schema: newSchema() });
  const opened = await Promise.allSettled([store.open(), store.open(), store.open()]);
  expect(opened.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  await store.close();
  await store.close();
  expect(await store.runs({ limit: 1 })).toEqual([]);
  await store.close();
});

it("P36 runs that are started in transactions, and children, never outgrow the journal", async () => {
  const schema = newSchema();
  const store = postgresStore(URL_OF_SERVER, { schema });
  const client = await connect();
  onTestFinished(async () => {
    await store.close();
    await client.end();
  });
  await store.open();
  const partition = async (i: number) =>
    (await admin.query({ text: `select to_regclass('${schema}.journal_${i}') is not null as found` })).rows[0]?.[
      "found"
    ];
  for (const i of [2, 4, 6]) {
    await admin.query({ text: `select setval('${schema}.runs_n_seq', ${i * RUNS_PER_PARTITION})` });
    await client.query({ text: "begin" });
    expect(await store.enlist?.(client, creation(`r${i}`))).toEqual({ run: `r${i}`, kind: "applied" });
    await client.query({ text: "commit" });
    await expect.poll(() => partition(i + 2)).toBe(true);
  }
  await store.register(newWorker("w1"));
  await apply(store, creation("parent", { claimed: true }));
  for (const i of [8, 10]) {
    await admin.query({ text: `select setval('${schema}.runs_n_seq', ${i * RUNS_PER_PARTITION})` });
    const { create, entries } = creation(`c${i}`);
    const child = { run: `c${i}`, create, entry: entries[0] } as never;
    await apply(store, appending("parent", i === 8 ? 1 : 2, 1, { children: [child] }));
    await expect.poll(() => partition(i + 2)).toBe(true);
  }
});

it("P22 B43 a transaction may have a timeout of a month", async () => {
  const store = await openStore();
  await apply(store, creation("r", { claimed: true }));
  const verdict = await store.transact?.({ ...SEALED, timeoutMs: 2_592_000_000 }, async (sql) => {
    await insert(sql, "patient");
    return { worker: "w1", commit: appending("r", 1, 1) };
  });
  expect(verdict).toEqual({ run: "r", kind: "applied" });
});

it("I7 I12 in a schema with the longest name there is, runs are started in transactions and others hear of it", async () => {
  const schema = newSchema(`x_${process.pid}_`.padEnd(58, "x"));
  const store = postgresStore(URL_OF_SERVER, { schema });
  const client = await connect();
  onTestFinished(async () => {
    await client.end();
    await store.close();
  });
  await store.open();
  const heard: unknown[] = [];
  store.hints((hint) => void heard.push(hint.runs));
  await expect.poll(() => heard.length).toBe(1);
  await client.query({ text: "begin" });
  expect(await store.enlist?.(client, creation("r1"))).toMatchObject({ kind: "applied" });
  await client.query({ text: "commit" });
  await expect.poll(() => heard.length).toBe(2);
});

it("a database that cannot hold every letter is refused, with what to do", async () => {
  const name = `latin_${process.pid}`;
  await admin.query({ text: `create database ${name} encoding 'LATIN1' locale 'C' template template0` });
  onTestFinished(async () => {
    await admin.query({ text: `drop database ${name} with (force)` });
  });
  const url = new URL(URL_OF_SERVER);
  url.pathname = `/${name}`;
  const store = postgresStore(url.href);
  await expect(store.open()).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringMatching(/UTF8/),
  });
  await store.close();
});

it("a store that could not be opened leaves no connection behind", async () => {
  const schema = newSchema();
  await admin.query({
    text: `create schema ${schema}; create table ${schema}.meta (key text primary key, value text)`,
  });
  await admin.query({ text: `insert into ${schema}.meta values ('schema_version', '999'), ('works_since', '999')` });
  const url = new URL(URL_OF_SERVER);
  url.searchParams.set("application_name", schema);
  await expect(Pawl.open(postgresStore(url.href, { schema }))).rejects.toMatchObject({ code: "newer_schema" });
  const text = `select count(*)::int as n from pg_stat_activity where application_name = '${schema}'`;
  await expect.poll(async () => (await admin.query({ text })).rows[0]?.["n"]).toBe(0);
});

it("P22 more transactions than a small pool has connections leave the store its own", async () => {
  const pool = new pg.Pool({ connectionString: URL_OF_SERVER, max: 6 });
  const schema = newSchema();
  const store = postgresStore(pool, { schema });
  onTestFinished(async () => {
    await store.close();
    await pool.end();
  });
  const beside = postgresStore(URL_OF_SERVER, { schema });
  await beside.open();
  await beside.register(newWorker("w1"));
  const ids = Array.from({ length: 8 }, (_, i) => `r${i}`);
  await apply(beside, ...ids.map((id) => creation(id, { claimed: true })));
  await beside.close();
  await store.open();
  const works = ids.map((id) =>
    store.transact?.(SEALED, async (sql) => {
      await insert(sql, "pooled");
      // The function asks the store for something, as one may.
      await Promise.all([store.run(id), store.run(id), store.run(id)]);
      return { worker: "w1", commit: appending(id, 1, 1) };
    }),
  );
  expect(((await Promise.all(works)) as Verdict[]).map(({ kind }) => kind)).toEqual(ids.map(() => "applied"));
}, 30_000);

it("B33 B47 a clock that was set is noticed with the next answer of the database, however quick the last one was", () => {
  let wall = 1_000_000;
  vi.spyOn(systemClock, "now").mockImplementation(() => wall);
  onTestFinished(() => void vi.restoreAllMocks());
  const clock = new StoreClock();
  const database = () => 5_000_000 + (wall - 1_000_000);
  clock.measured(database(), wall);
  expect(clock.now()).toBe(5_000_000);
  // Somebody sets this machine's clock an hour ahead. The answer takes 40 ms this time.
  wall += 3_600_000;
  const sentAt = wall;
  wall += 40;
  clock.measured(5_000_020, sentAt);
  expect(Math.abs(clock.now() - 5_000_040)).toBeLessThanOrEqual(20);
  // One that is slower, and agrees, changes nothing.
  const before = clock.now() - wall;
  const again = wall;
  wall += 500;
  clock.measured(again + before + 100, again);
  expect(clock.now() - wall).toBe(before);
});

it("I1 P36 a function that asks for commits without sync gets its record synced all the same", async () => {
  const store = await openStore();
  await apply(store, creation("r", { claimed: true }));
  await admin.query({
    text: `create or replace function ${TABLE}_saw() returns trigger language plpgsql as $$
      begin insert into ${TABLE} values ('sync ' || current_setting('synchronous_commit')); return null; end $$;
      create table ${TABLE}_late (n int);
      create constraint trigger saw after insert on ${TABLE}_late deferrable initially deferred for each row execute function ${TABLE}_saw()`,
  });
  onTestFinished(async () => {
    await admin.query({ text: `drop table ${TABLE}_late; drop function ${TABLE}_saw` });
  });
  const verdict = await store.transact?.(SEALED, async (sql) => {
    await sql.query("set local synchronous_commit = off");
    await sql.query(`insert into ${TABLE}_late values (1)`);
    return { worker: "w1", commit: appending("r", 1, 1) };
  });
  expect(verdict).toEqual({ run: "r", kind: "applied" });
  expect(await rowsOf("sync on")).toBe(1);
});

it("I1 a session that somebody else has left without sync, as a pooler may hand it on, syncs what is acknowledged", async () => {
  const pool = new pg.Pool({ connectionString: URL_OF_SERVER, max: 6, onConnect: asynchronous });
  const schema = newSchema();
  const store = postgresStore(pool, { schema });
  onTestFinished(async () => {
    await store.close();
    await pool.end();
  });
  await store.open();
  await store.register(newWorker("w1"));
  const text = ["runs", "inbox"].map(
    (table) =>
      `create constraint trigger saw_${table} after insert on ${schema}.${table} deferrable initially deferred for each row execute function ${schema}.saw()`,
  );
  await admin.query({
    text: `create function ${schema}.saw() returns trigger language plpgsql as $$
      begin insert into ${TABLE} values (tg_table_name || ' ' || current_setting('synchronous_commit')); return null; end $$; ${text.join(";")}`,
  });
  await apply(store, creation("r"));
  await store.deliver({ to: "r", id: "m", kind: "signal", name: "go", data: "1" });
  expect([await rowsOf("runs on"), await rowsOf("inbox on")]).toEqual([1, 1]);
});

async function asynchronous(client: PgClient): Promise<void> {
  await client.query({ text: "set synchronous_commit = off" });
}

it("I7 a transaction that its function has made read-only fails; it is not taken for a database that is away", async () => {
  const store = await openStore();
  await apply(store, creation("r", { claimed: true }));
  const verdict = await store.transact?.(SEALED, async (sql) => {
    await sql.query("set transaction read only");
    return { worker: "w1", commit: appending("r", 1, 1) };
  });
  expect(verdict).toMatchObject({ kind: "failed", error: { code: "transaction_failed" } });
});

it("I12 what a store has to say when it is closed is still said", async () => {
  const schema = newSchema();
  const [going, staying] = [postgresStore(URL_OF_SERVER, { schema }), postgresStore(URL_OF_SERVER, { schema })];
  await going.open();
  await staying.open();
  onTestFinished(() => staying.close());
  const heard: unknown[] = [];
  staying.hints((hint) => void heard.push(hint.runs));
  await expect.poll(() => heard.length).toBe(1);
  await going.register(newWorker("w1"));
  expect(await going.runs({ limit: 1 })).toEqual([]);
  await going.retire("w1");
  await going.close();
  await expect.poll(() => heard.length).toBe(2);
});

it("P16 I17 a start whose key an open transaction has taken waits a moment, and nobody else waits with it for long", async () => {
  const store = await openStore();
  const client = await connect();
  onTestFinished(() => void client.end());
  const keyed = (run: string) => ({ ...creation(run), keys: [{ space: "s", key: "k", digest: "d" }] });
  await client.query({ text: "begin" });
  expect(await store.enlist?.(client, keyed("mine"))).toMatchObject({ kind: "applied" });
  const verdicts = await store.commit({ worker: "w1", runs: [creation("a"), keyed("yours"), creation("b")] });
  expect(verdicts).toMatchObject([
    { run: "a", kind: "applied" },
    { run: "yours", kind: "failed", error: { code: "storage_unavailable" } },
    { run: "b", kind: "applied" },
  ]);
  expect(await store.commit({ worker: "w1", runs: [creation("mine"), creation("c")] })).toMatchObject([
    { run: "mine", kind: "failed", error: { code: "storage_unavailable" } },
    { run: "c", kind: "applied" },
  ]);
  await client.query({ text: "commit" });
  expect(await store.commit({ worker: "w1", runs: [keyed("yours")] })).toMatchObject([{ why: "key" }]);
});

/** A transaction on a connection that answers as it is told; what it was sent is kept. */
function transactOn(answer: (text: string) => unknown, commit: RunCommit) {
  const sent: string[] = [];
  const client = {
    async query({ text }: { text: string }) {
      sent.push(text.split(" ")[0] as string);
      return answer(text) ?? { rows: [], command: text.split(" ")[0]?.toUpperCase() };
    },
  };
  const session = new Session(client as never);
  const sessions = { where: "here", take: async () => session, discard() {}, giveBack() {} };
  const to = { schema: "s", owned: new OwnedRuns(), now: () => null, sessions } as never;
  return { sent, verdict: transact(to, SEALED, async () => ({ worker: "w1", commit })) };
}

it("I7 P17 if COMMIT was answered and the statement before it was not, the outcome is unknown, and never taken for a failure", async () => {
  const { verdict } = transactOn(
    (text) => (text.includes("transact_1") ? Promise.reject(new Error("Query read timeout")) : null),
    appending("r", 1, 1),
  );
  await expect(verdict).rejects.toMatchObject({ code: "unknown_outcome" });
});

it("I7 an outcome that is too large to be sent is never left behind by its COMMIT", async () => {
  const data = "x".repeat(70 * MIB);
  const { sent, verdict } = transactOn(
    (text) => (text.includes("transact_1") ? Promise.reject(new RangeError("Invalid string length")) : null),
    { ...appending("r", 1), entries: [{ ...entry(1), data }] },
  );
  expect(await verdict).toMatchObject({ kind: "failed", error: { message: "Invalid string length" } });
  expect(sent).toEqual(["begin", "select", "select", "rollback"]);
});

it("I7 X-4 SET is refused where it would outlive the transaction, and SET LOCAL is not", async () => {
  const store = await openStore();
  await apply(store, creation("r", { claimed: true }));
  const verdict = await store.transact?.(SEALED, async (sql) => {
    for (const text of ["set search_path = pg_temp", "/* for all */ SET SESSION role postgres"])
      await expect(sql.query(text)).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining("Use SET LOCAL"),
      });
    for (const text of ["set local search_path = public", "set constraints all deferred"]) await sql.query(text);
    return { worker: "w1", commit: appending("r", 1, 1) };
  });
  expect(verdict).toEqual({ run: "r", kind: "applied" });
});

it("P17 I2 a store that goes away when a part of a commit was applied leaves an unknown outcome, never the word that nothing was done", async () => {
  const answers: (() => unknown)[] = [
    () => ({ done: { numbers: [1], answers: {} } }),
    () => {
      throw unavailable(new Error("gone"), "here");
    },
  ];
  const query = async () => [answers.shift()?.()];
  const to = { schema: "s", owned: new OwnedRuns(), now: () => null, created() {}, link: () => ({ query }) } as never;
  const runs = [appending("r", 1, 1), appending("r", 2, 1)];
  await expect(commit(to, { worker: "w1", runs })).rejects.toMatchObject({ code: "unknown_outcome" });
  answers.push(() => {
    throw unavailable(new Error("gone"), "here");
  });
  await expect(commit(to, { worker: "w1", runs })).rejects.toMatchObject({ code: "storage_unavailable" });
});

it("I7 S4-30 values that do not fit a statement are the function's error, not a database that is away", async () => {
  const store = await openStore();
  const failing = (work: (sql: Sql) => Promise<unknown>) =>
    store.transact?.(SEALED, async (sql) => {
      await work(sql);
      throw new Error("not reached");
    });
  await expect(failing((sql) => sql.query("select $1::int + $2::int", [1]))).rejects.toMatchObject({ code: "08P01" });
  await expect(failing((sql) => sql.query("select $1::json", [{ n: 1n }]))).rejects.toThrow(TypeError);
});

it("P16 P17 what several runs have to write is sent in pieces that the driver and the server can hold", async () => {
  const sent: unknown[] = [];
  const query = async (_text: string, values: readonly unknown[], bytes: number) => {
    const runs = (values[3] as string).split(",");
    sent.push([runs.length, bytes]);
    // What the driver says of a statement that it cannot put into one string.
    if (bytes > 300 * MIB) throw new RangeError("Invalid string length");
    return [{ done: { numbers: runs.map((_, i) => i + 1), answers: {} } }];
  };
  const to = { schema: "s", owned: new OwnedRuns(), now: () => null, created() {}, link: () => ({ query }) } as never;
  const data = "x".repeat(30 * MIB);
  const large = (run: string, count: number) => ({
    ...appending(run, 1),
    entries: Array.from({ length: count }, (_, i) => ({ ...entry(1 + i), data })),
  });
  const five = ["a", "b", "c", "d", "e"].map((run) => large(run, 1));
  const verdicts = await commit(to, { worker: "w1", runs: five });
  expect(verdicts.map(({ kind }) => kind)).toEqual(five.map(() => "applied"));
  expect(sent.splice(0)).toEqual([
    [2, 60 * MIB],
    [2, 60 * MIB],
    [1, 30 * MIB],
  ]);
  // One run alone with more than that fails alone: surely nothing of it was applied.
  const runs = [large("a", 11), appending("b", 1)];
  expect(await commit(to, { worker: "w1", runs })).toMatchObject([{ kind: "failed" }, { kind: "applied" }]);
});

it("B38 a connection of a pool that no longer answers is noticed as one of a URL is", async () => {
  const limits: unknown[] = [];
  const link = new Link({
    where: "here",
    limitMs: 1234,
    driver: loadDriver,
    client: () =>
      ({
        connect: async () => {},
        on: () => {},
        query: async ({ query_timeout }: { query_timeout?: number }) => {
          limits.push(query_timeout);
          return { rows: [] };
        },
      }) as never,
  });
  await link.read("select 1");
  await link.query("select 1", [], 1_000_000);
  expect(limits).toEqual([1234, 2234]);
});

it("P29 B33 when the database's clock is set back, leases are counted from there on: who dies then is not thought alive for an hour", async () => {
  const schema = newSchema();
  const store = postgresStore(URL_OF_SERVER, { schema });
  onTestFinished(() => store.close());
  await store.open();
  await store.register(newWorker("w1"));
  await admin.query({
    text: `create or replace function ${schema}.time_1(p_given double precision) returns double precision language sql volatile as
      $$ select coalesce(p_given, floor(extract(epoch from clock_timestamp()) * 1000)::double precision - 3600000) $$`,
  });
  expect(await store.heartbeat("w1")).toMatchObject({ alive: true });
  expect((await store.workers())[0]?.leaseLeftMs).toBeLessThanOrEqual(15_000);
});
