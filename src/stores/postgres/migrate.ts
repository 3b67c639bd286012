import { PawlError } from "../../base/errors.ts";
import type { PgClient } from "./driver.ts";
import { MIGRATIONS, type Migration } from "./schema.ts";

/** Brings the schema up to the newest version, one transaction per step, or refuses one that this Pawl is too old for. */
export async function migrate(
  client: PgClient,
  schema: string,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const latest = migrations.at(-1)?.version ?? 0;
  const found = await schemaVersion(client, schema);
  if (found.since > latest) throw newerSchema(schema, found.version, latest);
  for (const migration of migrations) if (migration.version > found.version) await step(client, schema, migration);
}

// Another process may have taken the step since we looked, so the version is read again under the lock.
async function step(client: PgClient, schema: string, { version, since, sql }: Migration): Promise<void> {
  await client.query({ text: "begin" });
  try {
    await client.query({ text: "select pg_advisory_xact_lock(hashtext($1))", values: [`pawl ${schema}`] });
    await client.query({ text: `create schema if not exists ${schema}` });
    await client.query({
      text: `create table if not exists ${schema}.meta (key text primary key, value text not null)`,
    });
    if ((await schemaVersion(client, schema)).version < version) {
      await client.query({ text: sql(schema) });
      await client.query({
        text: `insert into ${schema}.meta (key, value) values ('schema_version', $1), ('works_since', $2)
          on conflict (key) do update set value = excluded.value`,
        values: [String(version), String(since)],
      });
    }
    await client.query({ text: "commit" });
  } catch (error) {
    await client.query({ text: "rollback" }).catch(() => {});
    throw error;
  }
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
