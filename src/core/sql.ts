// SQL in a transaction
// What a transaction's function works with. A store has the half of it that suits its driver; the other half says so when it is used.
import type { Dry } from "./dry.ts";
import type { Duration, Retry } from "./retry.ts";

export type SqlRow = Record<string, unknown>;

export interface SqlResult<R = SqlRow> {
  readonly rows: R[];
  readonly rowCount: number;
  readonly command: "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "COMMIT" | "ROLLBACK";
}

/** A statement as `pg` takes it. */
export interface SqlQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly rowMode?: string;
  readonly types?: unknown;
}

/** The transaction's connection in the shape of a client and of a pool of `pg`: for query builders such as Kysely and Drizzle. */
export interface SqlClient {
  query<R = SqlRow>(query: string | SqlQuery, values?: readonly unknown[]): Promise<SqlResult<R>>;
  /** There are no cursors. */
  query(cursor: { close(): unknown }): never;
  connect(): Promise<SqlClient>;
  release(): void;
  end(): Promise<void>;
  readonly options: object;
}

/** The transaction that a function of `ctx.transaction` runs in. */
export interface Sql {
  /** PostgreSQL: the rows of one statement, with `$1`, `$2` for the values. */
  query<R = SqlRow>(text: string, values?: readonly unknown[]): Promise<R[]>;
  /** PostgreSQL: for query builders. */
  readonly client: SqlClient;
  /** SQLite: all rows of one statement, with `?` for the values. */
  all<R = SqlRow>(text: string, ...values: readonly SqlInput[]): R[];
  /** SQLite: the first row. */
  get<R = SqlRow>(text: string, ...values: readonly SqlInput[]): R | undefined;
  /** SQLite: changes rows. */
  run(text: string, ...values: readonly SqlInput[]): { readonly changes: number; readonly lastInsertRowid: number };
}

/** What SQLite can hold. */
export type SqlInput = string | number | bigint | Uint8Array | null;

/**
 * A transaction that the user has opened: the `sql` of ctx.transaction, a client of `pg`, or a transaction of Kysely or Drizzle on PostgreSQL.
 * Known by their shape, so that none of these packages is needed.
 */
export type OpenTransaction =
  | Sql
  | { query(text: string, values: unknown[]): Promise<{ readonly rows: unknown[] }> }
  | { executeQuery(query: never): Promise<{ readonly rows: unknown[] }> }
  | { execute(query: never): PromiseLike<unknown> };

export type Isolation = "read committed" | "repeatable read" | "serializable";

export interface TransactionOptions {
  /** Overrides the key that is derived from the name. May be used once in a run. */
  readonly key?: string;
  /** Time for one attempt, and for each of its statements. */
  readonly timeout?: Duration;
  /** Serialization failures and deadlocks count as transient. */
  readonly retry?: Retry;
  /** PostgreSQL: what it sees of others. Default "read committed". */
  readonly isolation?: Isolation;
  /** What it answers with in a dry run, where nothing is recorded. */
  readonly dry?: Exclude<Dry<unknown>, "run">;
}

const ENDS_OR_BEGINS =
  /^(?:\s|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/|;)*(begin|start\s+transaction|commit|end|abort|rollback(?!\s+(?:transaction\s+|work\s+)?to\b)|prepare\s+transaction)\b/i;

/** The word by which a statement would begin or end a transaction, which is the engine's to do; `null` for all others. */
export function transactionWord(text: string): string | null {
  return ENDS_OR_BEGINS.exec(text)?.[1] ?? null;
}
