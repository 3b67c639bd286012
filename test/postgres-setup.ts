// One PostgreSQL server for all tests of a run, with real syncs. Each test file has a schema of its own in it.
import type { TestProject } from "vitest/node";
import { openPostgres } from "./postgres.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly postgresUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await openPostgres({ settings: { max_connections: 300 } });
  project.provide("postgresUrl", server.url);
  return () => server.stop();
}
