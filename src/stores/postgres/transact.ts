// Transactions that hold a user's SQL as well
//
//   TR1. Fence, journal and the rest of the run's commit are the last statement (P22), sent together with COMMIT: whoever freezes or dies before
//        has locked nothing that fencing waits for, and nobody can freeze in between.
//        One that may be too large to be sent at all goes first: COMMIT alone would leave the user's part without its record.
//   TR2. Nothing is applied unless COMMIT says COMMIT: after a failed statement it answers ROLLBACK.
//   TR3. A connection that is lost before the last statement was sent leaves nothing behind. After that the outcome is unknown.
import { randomUUID } from "node:crypto";
import { hasCode, PawlError } from "../../base/errors.ts";
import type { Isolation, Sql } from "../../core/sql.ts";
import type { RunCommit, Sealed, TransactRequest, Verdict } from "../../core/store.ts";
import { commitFault } from "../commit-fault.ts";
import { transactionIsOver } from "../sql-errors.ts";
import { type Answer, bytesOf, type Committing, readAnswer, STATEMENT_BYTES, verdictOf } from "./commit.ts";
import { CommitStatement, type StatementContext } from "./commit-statement.ts";
import { isAway, isRefusal, lostAnswer, sqlState, unavailable } from "./database-error.ts";
import { loadDriver, type PgClient, type PgResult, type PgValue } from "./driver.ts";
import { limitFor } from "./link.ts";
import { PgSql } from "./pg-sql.ts";
import type { Session, Sessions } from "./sessions.ts";
import { MADE_READ_ONLY, OTHER_TRANSACTION, REFUSED } from "./transact-functions.ts";

export interface Transacting extends Committing {
  readonly sessions: Sessions;
}

const ANSWER_LIMIT_MS = 10_000;
/** Twenty days. */
const LONGEST_LIMIT_MS = 1_728_000_000;
const FAILED_TRANSACTION = "25P02";

const BEGIN: Readonly<Record<Isolation, string>> = {
  "read committed": "begin isolation level read committed",
  "repeatable read": "begin isolation level repeatable read",
  serializable: "begin isolation level serializable",
};

export async function transact(
  to: Transacting,
  given: TransactRequest,
  work: (sql: Sql) => Sealed | Promise<Sealed>,
): Promise<Verdict> {
  const session = await to.sessions.take();
  const token = randomUUID();
  const request = { ...given, timeoutMs: limitOf(given.timeoutMs), idleMs: limitOf(given.idleMs) };
  const sql = new PgSql(session, request, to.sessions.where);
  let sealed: Sealed | null = null;
  try {
    await begin(session.client, request, token, to.sessions.where);
    sealed = await work(sql);
    // A statement that nobody waited for must not be sent behind COMMIT.
    sql.close();
    if (sql.fault === null) return await finish(to, session, token, request.lane, sealed);
  } catch (error) {
    if (sealed !== null) throw error;
    await rollBack(to.sessions, session, sql.isBusy || sql.fault !== null);
    throw sql.fault ?? error;
  } finally {
    sql.close();
  }
  // Lost before its last statement was sent.
  to.sessions.discard(session);
  if (hasCode(sql.fault, "storage_unavailable")) throw sql.fault;
  return { run: sealed.commit.run, kind: "failed", error: sql.fault };
}

/** A limit that PostgreSQL and timers can hold; none at all is what they take zero for. */
function limitOf(ms: number): number {
  return Math.min(Math.max(1, Math.ceil(ms)), LONGEST_LIMIT_MS);
}

/** The settings last as long as the transaction. One of them names it, so that its last statement can tell that it is still the same. */
async function begin(client: PgClient, request: TransactRequest, token: string, where: string): Promise<void> {
  const { isolation, timeoutMs, idleMs } = request;
  const settings = `select set_config('pawl.transaction', $1, true), set_config('statement_timeout', $2, true),
    set_config('idle_in_transaction_session_timeout', $3, true), set_config('pawl.read_only', current_setting('transaction_read_only'), true)`;
  const values = [token, String(timeoutMs), String(idleMs)];
  try {
    await Promise.all([
      client.query({ text: BEGIN[isolation], query_timeout: ANSWER_LIMIT_MS }),
      client.query({ text: settings, values, query_timeout: ANSWER_LIMIT_MS }),
    ]);
  } catch (error) {
    throw unavailable(error, where);
  }
}

/** A statement that is still under way is not waited for. */
async function rollBack(sessions: Sessions, session: Session, isLost: boolean): Promise<void> {
  if (isLost) return sessions.discard(session);
  try {
    await session.client.query({ text: "rollback", query_timeout: ANSWER_LIMIT_MS });
    sessions.giveBack(session);
  } catch {
    sessions.discard(session);
  }
}

async function finish(
  to: Transacting,
  session: Session,
  token: string,
  lane: number,
  { worker, commit }: Sealed,
): Promise<Verdict> {
  const { schema, owned } = to;
  const { run } = commit;
  const { fault, values } = valuesOf(commit, { worker, lane, now: to.now(), owned });
  if (fault !== null) {
    await rollBack(to.sessions, session, false);
    return { run, kind: "failed", error: fault };
  }
  values.unshift(token);
  const marks = values.map((_value, i) => `$${i + 1}`).join(", ");
  const text = `select ${schema}.transact_1(${marks}) as done`;
  const { types } = await loadDriver();
  const bytes = bytesOf(commit);
  const query_timeout = limitFor(ANSWER_LIMIT_MS, bytes);
  const sending = session.client.query({ text, values, types, query_timeout });
  const isRefused = bytes > STATEMENT_BYTES && (await hasFailed(sending));
  const [last, end] = await Promise.allSettled([
    sending,
    session.client.query({ text: isRefused ? "rollback" : "commit", query_timeout }),
  ]);
  const lost = [end, ...(isCommitted(end) ? [last] : [])].find(isLost);
  if (lost !== undefined) {
    owned.forgetAll();
    to.sessions.discard(session);
    throw lostAnswer(lost.reason, to.sessions.where);
  }
  to.sessions.giveBack(session);
  if (isCommitted(end) && last.status === "fulfilled") return readAnswer(to, worker, commit, last.value.rows[0]);
  owned.forget(run);
  return refusal(to, commit, last.status === "rejected" ? last.reason : end.status === "rejected" ? end.reason : null);
}

/** What there is to send, or why it cannot be: it is no sound commit, or too large for one string. */
function valuesOf(commit: RunCommit, context: StatementContext): { fault: unknown; values: PgValue[] } {
  const fault = commitFault(commit);
  if (fault !== null) return { fault, values: [] };
  try {
    return { fault, values: new CommitStatement([commit], true, context).arguments() };
  } catch (error) {
    return { fault: error, values: [] };
  }
}

function hasFailed(answer: Promise<unknown>): Promise<boolean> {
  return answer.then(
    () => false,
    () => true,
  );
}

/** No answer came; that of COMMIT may have come all the same. */
function isLost(answer: PromiseSettledResult<PgResult>): answer is PromiseRejectedResult {
  return answer.status === "rejected" && !isRefusal(answer.reason);
}

function isCommitted(end: PromiseSettledResult<PgResult>): boolean {
  return end.status === "fulfilled" && end.value.command === "COMMIT";
}

/** Why nothing was applied: the run's own condition, the state of the database, or something that the user's SQL has led to. */
function refusal(to: Transacting, commit: RunCommit, error: unknown): Verdict {
  const { run } = commit;
  const state = sqlState(error);
  if (state === REFUSED)
    return verdictOf(commit, JSON.parse((error as Error).message) as Exclude<Answer, { kind: "again" }>);
  if (state === MADE_READ_ONLY) return { run, kind: "failed", error: madeReadOnly(error) };
  if (state === FAILED_TRANSACTION || state === OTHER_TRANSACTION || error === null) {
    return { run, kind: "failed", error: transactionIsOver(error ?? undefined) };
  }
  if (isAway(state)) throw unavailable(error, to.sessions.where);
  return { run, kind: "failed", error };
}

function madeReadOnly(cause: unknown): PawlError {
  const message =
    "This transaction was made read-only, so that its outcome cannot be recorded. Leave out SET TRANSACTION READ ONLY, or read in a step.";
  return new PawlError("transaction_failed", message, { cause });
}
