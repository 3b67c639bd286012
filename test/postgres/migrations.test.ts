// Migrations: many processes may come at once, work goes on meanwhile, and whoever is too old is told so.
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { Pawl } from "../../src/client/pawl.ts";
import type { Log } from "../../src/core/context.ts";
import { workflow } from "../../src/core/workflow.ts";
import { loadDriver, type PgClient } from "../../src/stores/postgres/driver.ts";
import { migrate } from "../../src/stores/postgres/migrate.ts";
import { postgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { LATEST_SCHEMA, MIGRATIONS, type Migration } from "../../src/stores/postgres/schema.ts";

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

/** What a later release may bring: columns, indexes and functions that old code does not know. */
const NEXT: Migration = {
  version: LATEST_SCHEMA + 1,
  since: LATEST_SCHEMA,
  sql: (s) => `
    alter table ${s}.runs add column note text not null default 'none';
    alter table ${s}.journal add column origin text;
    create index runs_note on ${s}.runs (note) where note <> 'none';
    create table ${s}.later (id text primary key);
    create function ${s}.claim_2() returns int language sql as $$ select 2 $$;`,
};

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

it("I23 the next migration runs while workers are busy; old and new ones work side by side, and no run sees an error", async () => {
  const schema = newSchema();
  const errors: string[] = [];
  const note = (message: string) => void errors.push(message);
  const logger: Log = { debug() {}, info() {}, warn: note, error: note };
  const work = workflow("work", async (ctx, value: number) => {
    let sum = 0;
    for (let i = 0; i < 5; i++) sum += await ctx.step("s", async () => value);
    await ctx.sleep("5ms");
    return sum;
  });
  const open = () =>
    Pawl.open(postgresStore(inject("postgresUrl"), { schema }), { workflows: [work], logger, handleSignals: false });
  const old = await open();
  let started = 0;
  let isOver = false;
  const results: Promise<void>[] = [];
  const drive = (pawl: Pawl) =>
    Array.from({ length: 8 }, async (_, value) => {
      while (!isOver) {
        expect(await pawl.run(work, value)).toBe(5 * value);
        started++;
      }
    });
  results.push(...drive(old));
  await expect.poll(() => started, PATIENCE).toBeGreaterThan(20);
  const migrating = await connect();
  await migrate(migrating, `"${schema}"`, [...MIGRATIONS, NEXT]);
  expect(await versionOf(schema)).toBe(NEXT.version);
  const before = started;
  const fresh = await open();
  results.push(...drive(fresh));
  await expect.poll(() => started, PATIENCE).toBeGreaterThan(before + 60);
  isOver = true;
  await Promise.all(results);
  await migrate(migrating, `"${schema}"`, [...MIGRATIONS, NEXT]);
  await migrating.end();
  await Promise.all([old.close(), fresh.close()]);
  expect(errors).toEqual([]);
}, 60_000);

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
