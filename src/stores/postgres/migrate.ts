import { PawlError } from "../../base/errors.ts";
import type { PgClient } from "./driver.ts";
import { MIGRATIONS, type Migration } from "./schema.ts";

/** How long a step waits for a table. Whoever wants it for itself holds up all who come later, so it gives up soon and tries again. */
const LOCK_LIMIT = "2s";
const ATTEMPTS = 30;
/** An index over many runs takes its time: cut off, it would begin again at every start. */
const STEP_LIMIT_MS = 3_600_000;
const LOCK_NOT_AVAILABLE = "55P03";
const DEADLOCK = "40P01";

// Captured at load: the determinism guard replaces the globals later.
const { setTimeout: startTimer } = globalThis;

/** Brings the schema up to the newest version, one transaction per step, or refuses one that this Pawl is too old for. */
export async function migrate(
  client: PgClient,
  schema: string,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const latest = migrations.at(-1)?.version ?? 0;
  const found = await schemaVersion(client, schema);
  if (found.since > latest) throw newerSchema(schema, found.version, latest);
  for (const migration of migrations)
    if (migration.version > found.version) await patiently(() => step(client, schema, migration));
}

async function patiently(attempt: () => Promise<void>): Promise<void> {
  for (let failures = 0; ; ) {
    try {
      return await attempt();
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if ((code !== LOCK_NOT_AVAILABLE && code !== DEADLOCK) || ++failures >= ATTEMPTS) throw error;
      await new Promise<void>((resolve) => void startTimer(resolve, 50 + Math.random() * 200));
    }
  }
}

// Another process may have taken the step since we looked, so the version is read again under the lock.
async function step(client: PgClient, schema: string, { version, since, sql }: Migration): Promise<void> {
  const run = (text: string, ...values: string[]) => client.query({ text, values });
  await run("begin");
  try {
    await run("select pg_advisory_xact_lock(hashtext($1))", `pawl ${schema}`);
    await run(`set local lock_timeout = '${LOCK_LIMIT}'`);
    await createSchema(client, schema);
    await run(`create table if not exists ${schema}.meta (key text primary key, value text not null)`);
    if ((await schemaVersion(client, schema)).version < version) {
      await client.query({ text: sql(schema), query_timeout: STEP_LIMIT_MS });
      await run(
        `insert into ${schema}.meta (key, value) values ('schema_version', $1), ('works_since', $2)
         on conflict (key) do update set value = excluded.value`,
        String(version),
        String(since),
      );
    }
    await run("commit");
  } catch (error) {
    await run("rollback").catch(() => {});
    throw error;
  }
}

/** Only where there is none: to ask for one that exists needs rights, too. */
async function createSchema(client: PgClient, schema: string): Promise<void> {
  const { rows } = await client.query({ text: "select to_regnamespace($1) is null as missing", values: [schema] });
  if (rows[0]?.["missing"] === true) await client.query({ text: `create schema ${schema}` });
}

async function schemaVersion(client: PgClient, schema: string): Promise<{ version: number; since: number }> {
  const { rows } = await client.query({
    text: "select to_regclass($1) is not null as found",
    values: [`${schema}.meta`],
  });
  if (rows[0]?.["found"] !== true) return { version: 0, since: 0 };
  const meta = await client.query({ text: `select key, value from ${schema}.meta` });
  const numberOf = (key: string) => Number(meta.rows.find((row) => row["key"] === key)?.["value"] ?? 0);
  return { version: numberOf("schema_version"), since: numberOf("works_since") };
}

function newerSchema(schema: string, found: number, latest: number): PawlError {
  return new PawlError(
    "newer_schema",
    `The schema ${schema} has version ${found}, written by a newer Pawl; this one knows version ${latest}. Upgrade Pawl here. Nothing was changed.`,
    { fields: { schema, found, known: latest } },
  );
}
