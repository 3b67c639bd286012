// Transactions that hold a user's SQL as well
// They run on the one connection of this process, to their end and without waiting for anything in between (P22), so that nothing else of this
// process can get into them.
import type { Clock } from "../../base/clock.ts";
import { PawlError } from "../../base/errors.ts";
import { type Sql, type SqlClient, type SqlInput, type SqlRow, transactionWord } from "../../core/sql.ts";
import type { RunCommit, Sealed, Verdict } from "../../core/store.ts";
import type { OwnedRuns } from "../owned-runs.ts";
import { notThisWay, transactionIsOver, transactionRefused } from "../sql-errors.ts";
import { commitNow } from "./commit.ts";
import type { Connection } from "./connection.ts";
import { isStorageFault, sqliteCode } from "./storage-error.ts";

/** A statement of the user's that is wrong. */
const GENERAL_ERROR = 1;

/** Thrown to have everything rolled back, for the sake of a verdict. */
class NotApplied extends Error {
  readonly verdict: Verdict;

  constructor(verdict: Verdict) {
    super();
    this.verdict = verdict;
  }
}

export interface Transacting {
  readonly db: Connection;
  readonly owned: OwnedRuns;
  readonly clock: Clock;
  /** Runs were started in it. */
  announce(): void;
}

export async function transact(to: Transacting, work: (sql: Sql) => Sealed | Promise<Sealed>): Promise<Verdict> {
  let sql: SqliteSql | null = null;
  try {
    const verdict = await to.db.write(() => {
      // A user's function runs once. If the lock was lost at the last moment, the whole is begun again by whoever asked for it.
      if (sql !== null)
        throw new PawlError("storage_unavailable", `The database ${to.db.path} was locked by another process.`);
      sql = new SqliteSql(to);
      return runIn(to, sql, work);
    });
    if ((sql as SqliteSql | null)?.hasStarted === true) to.announce();
    return verdict;
  } catch (error) {
    if (error instanceof NotApplied) return error.verdict;
    throw error;
  }
}

function runIn(to: Transacting, sql: SqliteSql, work: (sql: Sql) => Sealed | Promise<Sealed>): Verdict {
  let sealed: Sealed;
  try {
    sealed = work(sql) as Sealed;
  } catch (error) {
    throw sql.storageFault ?? error;
  } finally {
    sql.close();
  }
  if (sql.storageFault !== null) throw sql.storageFault;
  const verdict = to.db.isTransaction
    ? commitNow(to.db, to.owned, sealed.worker, sealed.commit, to.clock)
    : ({ run: sealed.commit.run, kind: "failed", error: transactionIsOver() } as const);
  if (verdict.kind !== "applied") throw new NotApplied(verdict);
  return verdict;
}

/** Creates a run in a transaction of `ctx.transaction`. */
export function enlist(db: Connection, transaction: unknown, commit: RunCommit): Promise<Verdict> {
  if (transaction instanceof SqliteSql && transaction.isOf(db)) return Promise.resolve(transaction.start(commit));
  throw new PawlError(
    "invalid_argument",
    "`transaction` is none of this store's. On SQLite a run can be started in the transaction of ctx.transaction: give the `sql` that its function gets.",
  );
}

class SqliteSql implements Sql {
  readonly #to: Transacting;
  #isOpen = true;
  /** What was wrong with the file itself, whoever has caught it since. */
  storageFault: unknown = null;
  hasStarted = false;

  constructor(to: Transacting) {
    this.#to = to;
  }

  isOf(db: Connection): boolean {
    return this.#to.db === db;
  }

  close(): void {
    this.#isOpen = false;
  }

  all<R = SqlRow>(text: string, ...values: readonly SqlInput[]): R[] {
    return this.#do(text, (statement) => statement.all(...values) as R[]);
  }

  get<R = SqlRow>(text: string, ...values: readonly SqlInput[]): R | undefined {
    return this.#do(text, (statement) => statement.get(...values) as R | undefined);
  }

  run(text: string, ...values: readonly SqlInput[]): { readonly changes: number; readonly lastInsertRowid: number } {
    const { changes, lastInsertRowid } = this.#do(text, (statement) => statement.run(...values));
    return { changes: Number(changes), lastInsertRowid: Number(lastInsertRowid) };
  }

  query(): never {
    throw notThisWay("query", "SQLite", "all, get or run");
  }

  get client(): SqlClient {
    throw notThisWay("client", "SQLite", "all, get or run");
  }

  start(commit: RunCommit): Verdict {
    this.#assertOpen();
    const { db, owned, clock } = this.#to;
    this.hasStarted = true;
    return commitNow(db, owned, null, commit, clock);
  }

  #do<T>(text: string, ask: (statement: ReturnType<Connection["prepare"]>) => T): T {
    this.#assertOpen();
    const word = transactionWord(text);
    if (word !== null) throw transactionRefused(word);
    try {
      return ask(this.#to.db.prepare(text));
    } catch (error) {
      if (isStorageFault(error) && sqliteCode(error) !== GENERAL_ERROR) this.storageFault = error;
      throw error;
    }
  }

  #assertOpen(): void {
    if (!this.#isOpen || !this.#to.db.isTransaction) throw transactionIsOver();
  }
}
