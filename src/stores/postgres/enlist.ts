// Runs that are started in a transaction of the user's
// The statement goes through whatever they have: a client of `pg`, a transaction of Kysely or Drizzle, or that of ctx.transaction. The run is
// there if theirs commits, and so is the hint of it.
import { PawlError } from "../../base/errors.ts";
import type { RunCommit, Verdict } from "../../core/store.ts";
import { commitFault } from "../commit-fault.ts";
import { OwnedRuns } from "../owned-runs.ts";
import { type Answer, verdictOf } from "./commit.ts";
import { CommitStatement } from "./commit-statement.ts";
import { sqlState } from "./database-error.ts";
import type { PgValue } from "./driver.ts";
import { NO_TRANSACTION } from "./transact-functions.ts";

export interface Enlisting {
  readonly schema: string;
  readonly channel: string;
  /** Known to this store alone. */
  readonly token: string;
  /** What a test gives as the time, or null. */
  now(): number | null;
  /** A run was created, and has this number. */
  created(n: number): void;
}

type Ask = (text: string, values: readonly PgValue[]) => PromiseLike<unknown>;

export async function enlist(to: Enlisting, transaction: unknown, commit: RunCommit): Promise<Verdict> {
  const ask = askOf(transaction);
  const fault = commitFault(commit);
  if (fault !== null) return { run: commit.run, kind: "failed", error: fault };
  const context = { worker: null, lane: 0, now: to.now(), owned: new OwnedRuns() };
  const { token } = to;
  const values = [token, to.channel, ...new CommitStatement([commit], true, context).arguments()];
  const marks = values.map((_value, i) => `$${i + 1}`).join(", ");
  try {
    // What is set for the rest of the transaction is gone by the next statement, if there is none.
    await ask("select set_config('pawl.enlisted', $1, true)", [token]);
    const result = (await ask(`select ${to.schema}.enlist_1(${marks}) as answer`, values)) as Result;
    const [row] = "rows" in result ? result.rows : result;
    const answer = JSON.parse(row?.answer ?? "") as Exclude<Answer, { kind: "again" }>;
    if (answer.kind === "applied") to.created(answer.n);
    return verdictOf(commit, answer);
  } catch (error) {
    throw isOutside(error) ? noTransaction(error) : error;
  }
}

type Rows = readonly { readonly answer: string }[];
type Result = Rows | { readonly rows: Rows };

/** How statements are put to it. Packages of the user's are known by their shape: theirs may be another copy than ours. */
function askOf(transaction: unknown): Ask {
  const { query, executeQuery, execute } = (transaction ?? {}) as Record<string, unknown>;
  if (isFunction(query)) return (text, values) => query.call(transaction, text, values);
  if (isFunction(executeQuery)) return (text, values) => executeQuery.call(transaction, compiled(text, values));
  if (isFunction(execute)) return (text, values) => execute.call(transaction, wrapped(text, values));
  const next = "Give a client of `pg`, a transaction of Kysely or Drizzle, or the `sql` of ctx.transaction.";
  throw new PawlError("invalid_argument", `\`transaction\` is none that this store knows. ${next}`);
}

function isFunction(value: unknown): value is { call(self: unknown, ...args: unknown[]): PromiseLike<unknown> } {
  return typeof value === "function";
}

/** A query as Kysely's compiler gives it. */
function compiled(sql: string, parameters: readonly PgValue[]): object {
  const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] };
  return { sql, parameters, query, queryId: { queryId: "pawl" } };
}

/** A query as Drizzle's builders give it. */
function wrapped(sql: string, params: readonly PgValue[]): object {
  return { getSQL: () => ({ toQuery: () => ({ sql, params }) }) };
}

/** The error itself, or the one that a query builder has wrapped. */
function isOutside(error: unknown): boolean {
  return [error, (error as { cause?: unknown } | null)?.cause].some((one) => sqlState(one) === NO_TRANSACTION);
}

function noTransaction(cause: unknown): PawlError {
  const message =
    "`transaction` has no transaction open: the run would be there whatever becomes of your statements. Send BEGIN first, on this very connection.";
  return new PawlError("invalid_argument", message, { cause });
}
