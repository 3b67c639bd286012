// Migrations: many processes may come at once, work goes on meanwhile, and whoever is too old is told so.
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { Pawl } from "../../src/client/pawl.ts";
import type { Log } from "../../src/core/context.ts";
import { type Workflow, workflow } from "../../src/core/workflow.ts";
import { loadDriver, type PgClient } from "../../src/stores/postgres/driver.ts";
import { migrate } from "../../src/stores/postgres/migrate.ts";
import type { PgPool } from "../../src/stores/postgres/pooled-client.ts";
import { postgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { LATEST_SCHEMA, MIGRATIONS, type Migration } from "../../src/stores/postgres/schema.ts";
import { apply, creation, ending, newWorker } from "../../src/testing/store-cases/case.ts";

const PATIENCE = { timeout: 20_000 };

let admin: PgClient;
const schemas: string[] = [];

beforeAll(async () => {
  admin = await connect();
});

afterAll(async () => {
  for (const schema of schemas) await admin.query({ text: `drop schema if exists ${schema} cascade` });
  await admin.end();
});

async function connect(): Promise<PgClient> {
  const client = (await loadDriver()).client({ connectionString: inject("postgresUrl") });
  await client.connect();
  return client;
}

function newSchema(): string {
  const schema = `migrated_${process.pid}_${schemas.length}`;
  schemas.push(schema);
  return schema;
}

/**
 * What a later release may bring: columns, tables and indexes that old code does not know, and a new version of every function. A claim leaves a
 * mark where old ones leave none.
 */
const NEXT: Migration = {
  version: LATEST_SCHEMA + 1,
  since: LATEST_SCHEMA,
  sql: (s) => `
    alter table ${s}.runs add column note text not null default 'none';
    alter table ${s}.journal add column origin text;
    create index runs_note on ${s}.runs (note) where note <> 'none';
    create table ${s}.later (id text primary key);
    ${nextFunctions(s)}`,
};

function nextFunctions(s: string): string {
  const all = MIGRATIONS.map(({ sql }) => sql(s)).join("\n");
  const functions = all.match(/create function[\s\S]*?\$\$[\s\S]*?\$\$[^;]*;/g) ?? [];
  return renamed(functions.join("\n")).replaceAll("set owner = p_worker,", "set note = 'new', owner = p_worker,");
}

/** The same text with functions of the next release. */
function renamed(text: string): string {
  return text.replaceAll(/_(\d)\(/g, "_9$1(");
}

/** A pool as code of the next release would use it: its statements call the new functions. */
async function newerPool(called: Set<string>): Promise<PgPool> {
  const driver = await loadDriver();
  return {
    async connect() {
      const client = driver.client({ connectionString: inject("postgresUrl"), pipeline: true });
      await client.connect();
      return {
        query(query) {
          for (const [name] of query.text.matchAll(/\w+_\d(?=\()/g)) called.add(name);
          return client.query({ ...query, text: renamed(query.text) });
        },
        on: (event, listener) => client.on(event as "error", listener as () => void),
        release: () => void client.end(),
      };
    },
  };
}

async function versionOf(schema: string): Promise<number> {
  const { rows } = await admin.query({ text: `select value from ${schema}.meta where key = 'schema_version'` });
  return Number(rows[0]?.["value"]);
}

it("P36 ten processes that open an empty database at once make one schema", async () => {
  const schema = newSchema();
  const stores = Array.from({ length: 10 }, () => postgresStore(inject("postgresUrl"), { schema }));
  await Promise.all(stores.map((store) => store.open()));
  expect(await versionOf(schema)).toBe(LATEST_SCHEMA);
  await Promise.all(stores.map((store) => store.close()));
});

it("I23 the next migration runs while workers are busy; old and new ones work side by side, each with functions of its own, and no run sees an error", async () => {
  const schema = newSchema();
  const errors: string[] = [];
  const note = (message: string) => void errors.push(message);
  const logger: Log = { debug() {}, info() {}, warn: note, error: note };
  const oldStore = () => postgresStore(inject("postgresUrl"), { schema });
  // With room for two runs each, none of them keeps the others from having any.
  const open = (who: string, store = oldStore()) =>
    Pawl.open(store, { workflows: workedBy(who), concurrency: 2, logger, handleSignals: false });
  const client = await Pawl.open(oldStore(), { logger });
  const old = await open("old");
  const done: Worked[] = [];
  let isOver = false;
  const driving = Array.from({ length: 12 }, async (_, value) => {
    while (!isOver) {
      const run = await client.start("work", value, { version: "1.0.0" });
      const worked = (await run.result()) as Worked;
      expect(worked.sum).toBe(4 * value);
      done.push(worked);
    }
  });
  const seen = (places: string) => expect.poll(() => done.some(({ by }) => by.join() === places), PATIENCE).toBe(true);
  await seen("old,old");

  const migrating = await connect();
  const before = done.length;
  await migrate(migrating, `"${schema}"`, [...MIGRATIONS, NEXT]);
  expect(await versionOf(schema)).toBe(NEXT.version);
  const calledByNew = new Set<string>();
  const young = await open("new", postgresStore(await newerPool(calledByNew), { schema }));
  const late = await open("old");
  await Promise.all(["old,new", "new,old", "new,new"].map(seen));
  expect(done.length).toBeGreaterThan(before);

  // The old ones go, as in a rolling restart, and the new one has everything.
  await Promise.all([old.close(), late.close()]);
  const alone = done.length;
  await expect.poll(() => done.length, PATIENCE).toBeGreaterThan(alone + 24);
  isOver = true;
  await Promise.all(driving);
  const { rows } = await admin.query({
    text: `select note, count(*)::int > 0 as some from ${schema}.runs group by note`,
  });
  expect(rows.map((row) => row["note"]).toSorted()).toEqual(["new", "none"]);
  await migrate(migrating, `"${schema}"`, [...MIGRATIONS, NEXT]);
  await migrating.end();
  await Promise.all([young.close(), client.close()]);
  expect([...calledByNew]).toEqual(expect.arrayContaining(["register_1", "claim_2", "commit_1", "retire_1"]));
  expect(errors).toEqual([]);
}, 60_000);

it("I23 P16 a start waits for a migration that has the tables for itself, longer than for whoever has its id or its key", async () => {
  const schema = newSchema();
  const store = postgresStore(inject("postgresUrl"), { schema });
  await store.open();
  await store.register(newWorker("w1"));
  const holder = await connect();
  const keys = [{ space: "start", key: "k", digest: "d" }];
  for (const commit of [creation("plain", { claimed: true }), { ...creation("careful"), keys }]) {
    await holder.query({ text: "begin" });
    await holder.query({ text: `lock table "${schema}".runs, "${schema}".keys in access exclusive mode` });
    const committing = apply(store, commit);
    // The limit for those twice over, and more.
    await holder.query({ text: "select pg_sleep(1.3)" });
    await holder.query({ text: "commit" });
    await committing;
    expect(await store.run(commit.run)).not.toBe(null);
  }
  await holder.end();
  await store.close();
});

/** Which workers did the first and the last part of a run. */
interface Worked {
  readonly by: readonly string[];
  readonly sum: number;
}

/** The run lets go while it waits for its child, and whoever is first goes on with it. */
function workedBy(who: string) {
  const part = workflow("part", async (ctx, value: number) => ctx.step("part", async () => value));
  const work = workflow("work", async (ctx, value: number): Promise<Worked> => {
    const first = await ctx.step("first", async () => who);
    let sum = 0;
    for (let i = 0; i < 3; i++) sum += await ctx.step("s", async () => value);
    sum += await ctx.call(part, value);
    await ctx.sleep("5ms");
    return { by: [first, await ctx.step("last", async () => who)], sum };
  });
  return [part, work] as readonly Workflow<never, unknown>[];
}

it("I23 a schema that only newer code can use is refused, and nothing is changed", async () => {
  const schema = newSchema();
  const migrating = await connect();
  await migrate(migrating, `"${schema}"`, [...MIGRATIONS, { ...NEXT, since: NEXT.version }]);
  await migrating.end();
  await expect(postgresStore(inject("postgresUrl"), { schema }).open()).rejects.toMatchObject({
    code: "newer_schema",
    message: expect.stringContaining("Upgrade Pawl here. Nothing was changed."),
  });
});

it("a migration that fails leaves the schema as it was", async () => {
  const schema = newSchema();
  const migrating = await connect();
  await migrate(migrating, `"${schema}"`);
  const broken: Migration = { ...NEXT, sql: (s) => `create table ${s}.half (id int); select 1 / 0;` };
  await expect(migrate(migrating, `"${schema}"`, [...MIGRATIONS, broken])).rejects.toThrow("division by zero");
  expect(await versionOf(schema)).toBe(LATEST_SCHEMA);
  const { rows } = await admin.query({ text: "select to_regclass($1) as half", values: [`${schema}.half`] });
  expect(rows[0]?.["half"]).toBe(null);
  await migrating.end();
});

it("a user who may not create a schema is told which right is missing", async () => {
  await admin.query({ text: "drop role if exists pawl_guest" });
  await admin.query({ text: "create role pawl_guest login password 'secret'" });
  const url = new URL(inject("postgresUrl"));
  url.username = "pawl_guest";
  url.password = "secret";
  const store = postgresStore(url.href, { schema: "forbidden" });
  await expect(store.open()).rejects.toMatchObject({
    code: "storage_unavailable",
    message: expect.stringMatching(/rights to create and use its schema/),
  });
  await store.close();
  await expect(postgresStore(url.href.replace("secret", "wrong")).open()).rejects.toMatchObject({
    message: expect.stringMatching(/user and password/),
  });
});

it("a database whose isolation would freeze what a commit sees is refused, with what to set", async () => {
  await admin.query({ text: "drop role if exists pawl_frozen" });
  await admin.query({ text: "create role pawl_frozen superuser login password 'secret'" });
  await admin.query({ text: "alter role pawl_frozen set default_transaction_isolation = 'repeatable read'" });
  const url = new URL(inject("postgresUrl"));
  url.username = "pawl_frozen";
  url.password = "secret";
  const store = postgresStore(url.href, { schema: newSchema() });
  await expect(store.open()).rejects.toMatchObject({ message: expect.stringContaining('needs "read committed"') });
  await store.close();
});

it("C-20 Q20 what is held outlives the purge that workers of an older release call", async () => {
  const schema = newSchema();
  const store = postgresStore(inject("postgresUrl"), { schema });
  await store.open();
  await store.register(newWorker("w1"));
  for (const run of ["a", "held"]) {
    await apply(store, creation(run, { claimed: true, tags: ["vip"] }));
    await apply(store, ending(run, 1));
  }
  await store.hold("held", { who: "ada", why: "complaint 4711" });
  const { rows } = await admin.query({ text: `select ${schema}.purge_1(9e15, 9e15, 9, null) as gone` });
  expect([Number(rows[0]?.["gone"]), (await store.runs({ limit: 9 })).map(({ id }) => id)]).toEqual([1, ["held"]]);
  expect(await store.journal("held")).toHaveLength(2);
  await store.close();
});
