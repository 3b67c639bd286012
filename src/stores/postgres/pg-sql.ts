import { PawlError } from "../../base/errors.ts";
import {
  type Sql,
  type SqlClient,
  type SqlQuery,
  type SqlResult,
  type SqlRow,
  transactionWord,
} from "../../core/sql.ts";
import type { TransactRequest } from "../../core/store.ts";
import { notThisWay, transactionIsOver, transactionRefused } from "../sql-errors.ts";
import { isAway, isRefusal, isUnfit, sqlState, unavailable } from "./database-error.ts";
import type { PgQuery } from "./driver.ts";
import type { Session } from "./sessions.ts";

const IDLE_TOO_LONG = "25P03";
/** The connection is used for other transactions afterwards. */
const SETS_SESSION = /^(?:\s|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/|;)*set\s+(?!(?:local|transaction|constraints)\b)/i;
/** The server's own limit comes first; this is for one that no longer answers. */
const GRACE_MS = 5000;

/** The user's side of a transaction. */
export class PgSql implements Sql {
  readonly #session: Session;
  readonly #request: TransactRequest;
  readonly #where: string;
  #isOpen = true;
  #pending = 0;
  /** Why the transaction is lost, whoever has caught it since: the database is away, or it did nothing for too long. */
  fault: unknown = null;
  readonly client: SqlClient;

  constructor(session: Session, request: TransactRequest, where: string) {
    this.#session = session;
    this.#request = request;
    this.#where = where;
    const query = <R>(given: string | SqlQuery, values?: readonly unknown[]) =>
      this.#ask<R>(typeof given === "string" ? { text: given } : given, values);
    this.client = {
      query: query as SqlClient["query"],
      connect: async () => this.client,
      release: () => {},
      end: async () => {},
      options: {},
    };
    session.lost = (error) => this.#lost(error);
  }

  /** A statement waits for its answer. */
  get isBusy(): boolean {
    return this.#pending > 0;
  }

  close(): void {
    this.#isOpen = false;
  }

  async query<R = SqlRow>(text: string, values?: readonly unknown[]): Promise<R[]> {
    return (await this.#ask<R>({ text }, values)).rows;
  }

  all(): never {
    throw notThisWay("all", "PostgreSQL", "query");
  }

  get(): never {
    throw notThisWay("get", "PostgreSQL", "query");
  }

  run(): never {
    throw notThisWay("run", "PostgreSQL", "query");
  }

  async #ask<R>(query: SqlQuery, values: readonly unknown[] = query.values ?? []): Promise<SqlResult<R>> {
    if (this.fault !== null) throw this.fault;
    if (!this.#isOpen) throw transactionIsOver();
    const word = transactionWord(query.text);
    if (word !== null) throw transactionRefused(word);
    if (SETS_SESSION.test(query.text)) throw outlivesTransaction();
    this.#pending++;
    try {
      const { timeoutMs } = this.#request;
      // One statement at a time, with or without values: a second one could be the end of the transaction.
      const sent = { ...query, values, queryMode: "extended", query_timeout: timeoutMs + GRACE_MS } as PgQuery;
      return (await this.#session.client.query(sent)) as unknown as SqlResult<R>;
    } catch (error) {
      if (isUnfit(error)) throw error;
      if (!isRefusal(error)) this.#lost(error);
      else if (isAway(sqlState(error))) this.fault ??= unavailable(error, this.#where);
      throw this.fault ?? error;
    } finally {
      this.#pending--;
    }
  }

  #lost(error: unknown): void {
    this.fault ??= sqlState(error) === IDLE_TOO_LONG ? this.#idleTooLong() : unavailable(error, this.#where);
  }

  #idleTooLong(): PawlError {
    const seconds = this.#request.idleMs / 1000;
    return new PawlError(
      "transaction_failed",
      `The transaction was idle for ${seconds} s, and the database has ended it. Do what takes its time in a step before it, or raise \`lease\`.`,
      { fields: { seconds } },
    );
  }
}

function outlivesTransaction(): PawlError {
  const message =
    "SET outlives the transaction, on a connection that other runs use next. Use SET LOCAL, which ends with the transaction.";
  return new PawlError("invalid_argument", message, { fields: { statement: "SET" } });
}
