// One PostgreSQL server for all tests of a run, with real syncs. Test processes have schemas of their own in it.
import type { TestProject } from "vitest/node";
import { loadDriver } from "../src/stores/postgres/driver.ts";
import { openPostgres } from "./postgres.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly postgresUrl: string;
    /** What the names of schemas begin with that are dropped at the end. */
    readonly postgresSchemas: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await openPostgres({ settings: { max_connections: 300 } });
  const schemas = `test_${process.pid}_`;
  project.provide("postgresUrl", server.url);
  project.provide("postgresSchemas", schemas);
  return async () => {
    if (server.source === "TEST_PG_URL") await dropSchemas(server.url, schemas);
    await server.stop();
  };
}

/** Our own server takes them with it. */
async function dropSchemas(url: string, beginning: string): Promise<void> {
  const client = (await loadDriver()).client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query({
    text: "select quote_ident(nspname) as schema from pg_namespace where starts_with(nspname, $1)",
    values: [beginning],
  });
  for (const { schema } of rows) await client.query({ text: `drop schema ${schema} cascade` });
  await client.end();
}
