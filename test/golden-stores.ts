// The stores of earlier releases under test/golden, each loaded into a place of its own: what is frozen is never written to.
import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import { type Clock, systemClock } from "../src/base/clock.ts";
import type { StoredEntry } from "../src/core/journal.ts";
import type { Store } from "../src/core/store.ts";
import { loadDriver as loadPg, type PgClient } from "../src/stores/postgres/driver.ts";
import { postgresStore } from "../src/stores/postgres/postgres-store.ts";
import { loadDriver as loadSqlite } from "../src/stores/sqlite/driver.ts";
import { sqliteStore } from "../src/stores/sqlite/sqlite-store.ts";

export const FROZEN_STORES = ["sqlite", "postgres"] as const;
type Kind = (typeof FROZEN_STORES)[number];

interface FrozenRun {
  readonly id: string;
  readonly key: string | null;
  readonly workflow: string;
  readonly state: string;
  readonly journal: readonly StoredEntry[];
}

/** What the release itself has read from its store when it was frozen. */
interface Description {
  readonly frozenAt: number;
  /** As JSON has them. */
  readonly schedules: unknown;
  readonly runs: readonly FrozenRun[];
}

export interface FrozenStore extends Description {
  open(clock: Clock): Store;
  /** The rows of a statement. */
  query(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** What the schema is made of, by name: tables, indexes and functions. */
  schema(): Promise<ReadonlyMap<string, string>>;
  /** The same of a new store that today's code has made. */
  freshSchema(): Promise<ReadonlyMap<string, string>>;
  leave(): Promise<void>;
}

/** A clock that began at this moment. Frozen waits would be over if it were today. */
export function clockFrom(time: number): Clock {
  const by = time - systemClock.now();
  return {
    ...systemClock,
    now: () => systemClock.now() + by,
    at: (due, fire) => systemClock.at(due - by, fire),
  };
}

export function goldenFile(release: string, name: string): URL {
  return new URL(`./golden/${release}/${name}`, import.meta.url);
}

export async function loadFrozen(release: string, kind: Kind): Promise<FrozenStore> {
  const text = await readFile(goldenFile(release, `${kind}.json`), "utf8");
  const { facts, runs } = JSON.parse(text, revive) as { facts: Omit<Description, "runs">; runs: FrozenRun[] };
  const place = kind === "sqlite" ? await loadFile(release) : await loadDatabase(release);
  return { ...facts, runs, ...place };
}

function revive(_name: string, value: unknown): unknown {
  const { base64 } = (value ?? {}) as { base64?: string };
  return base64 === undefined ? value : new Uint8Array(Buffer.from(base64, "base64"));
}

type Place = Omit<FrozenStore, keyof Description>;

async function loadFile(release: string): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-golden-"));
  const file = join(folder, "store.db");
  await copyFile(goldenFile(release, "sqlite.db"), file);
  return {
    open: (clock) => sqliteStore(file, { clock }),
    query: async (text) => rowsOfFile(file, text),
    schema: async () => schemaOfFile(file),
    async freshSchema() {
      const fresh = join(folder, "fresh.db");
      await openOnce(sqliteStore(fresh));
      return schemaOfFile(fresh);
    },
    leave: () => rm(folder, { recursive: true, force: true }),
  };
}

function rowsOfFile(file: string, text: string): Readonly<Record<string, unknown>>[] {
  const db = loadSqlite().open(file);
  try {
    return db.prepare(text).all();
  } finally {
    db.close();
  }
}

const USERS_TABLE = "golden_ledger";

export function schemaOfFile(file: string): ReadonlyMap<string, string> {
  const rows = rowsOfFile(file, "select name, sql from sqlite_schema where sql is not null order by name");
  return new Map(
    rows.map(({ name, sql }) => [name as string, sql as string] as const).filter(([name]) => name !== USERS_TABLE),
  );
}

async function openOnce(store: Store): Promise<void> {
  await store.open();
  await store.close();
}

let databases = 0;

async function loadDatabase(release: string): Promise<Place> {
  const name = `golden_${process.pid}_${++databases}`;
  const url = new URL(inject("postgresUrl"));
  const admin = await connect(url.href);
  await admin.query({ text: `create database ${name}` });
  url.pathname = `/${name}`;
  const client = await connect(url.href);
  await client.query({ text: await readFile(goldenFile(release, "postgres.sql"), "utf8") });
  return {
    open: (clock) => postgresStore(url.href, { clock }),
    query: async (text) => (await client.query({ text })).rows,
    schema: () => schemaOfDatabase(client, "pawl"),
    async freshSchema() {
      await openOnce(postgresStore(url.href, { schema: "fresh" }));
      return schemaOfDatabase(client, "fresh");
    },
    async leave() {
      await client.end();
      await admin.query({ text: `drop database ${name} with (force)` });
      await admin.end();
    },
  };
}

async function connect(connectionString: string): Promise<PgClient> {
  const client = (await loadPg()).client({ connectionString });
  await client.connect();
  return client;
}

const SCHEMA_PARTS = `
  select 'table ' || c.relname as name, string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), l.collname,
      case when a.attnotnull then 'not null' end, a.attidentity, pg_get_expr(d.adbin, d.adrelid)), ', ' order by a.attname)
      || coalesce(array_to_string(c.reloptions, ' '), '') as text
    from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef as d on d.adrelid = c.oid and d.adnum = a.attnum left join pg_collation as l on l.oid = a.attcollation
    where c.relnamespace = $1::text::regnamespace and c.relkind in ('r', 'p') group by c.oid
  union all select 'index ' || indexname, indexdef from pg_indexes where schemaname = $1::text
  union all select 'function ' || proname || '(' || pg_get_function_identity_arguments(oid) || ')', pg_get_functiondef(oid) from pg_proc
    where pronamespace = $1::text::regnamespace
  order by name`;

async function schemaOfDatabase(client: PgClient, schema: string): Promise<ReadonlyMap<string, string>> {
  const { rows } = await client.query({ text: SCHEMA_PARTS, values: [schema] });
  const common = (text: string) => text.replaceAll(`"${schema}"`, "pawl").replaceAll(`${schema}.`, "pawl.");
  return new Map(rows.map((row) => [row["name"] as string, common(row["text"] as string)]));
}
