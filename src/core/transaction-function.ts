import { PawlError } from "../base/errors.ts";
import type { StepInfo } from "./context.ts";
import type { PassPorts } from "./pass-ports.ts";
import type { Sql } from "./sql.ts";

type Work = (sql: Sql, info: StepInfo) => unknown;

/** Says at the call what would not work later: a store without transactions, or an async function where none may wait (P22). */
export function transactionFunction({ transactions }: Pick<PassPorts, "transactions">, name: string, fn: Work): Work {
  if (typeof fn !== "function") {
    const shown = `ctx.transaction("${name}"`;
    throw invalid(`${shown}) needs a function as second argument: ${shown}, (sql) => …).`, name);
  }
  if (transactions === undefined || transactions === null) {
    const next = "Use a SQLite file or PostgreSQL, in tests as well, or a step whose function is idempotent.";
    throw invalid(`ctx.transaction("${name}") needs a store with transactions, and this one has none. ${next}`, name);
  }
  if (transactions === "asynchronous") return fn;
  if (fn.constructor.name === "AsyncFunction") throw mayNotWait(name);
  return (sql, info) => refusePromise(name, fn(sql, info));
}

function refusePromise(name: string, value: unknown): unknown {
  if (typeof (value as { then?: unknown } | null)?.then !== "function") return value;
  // Whatever becomes of it: its transaction is over.
  Promise.resolve(value).catch(() => {});
  throw mayNotWait(name);
}

function mayNotWait(name: string): PawlError {
  const why = "On SQLite everybody else who writes would wait for it.";
  const next = "Give a function that returns without a promise, and do what has to be awaited in a step before it.";
  return invalid(`The function of ctx.transaction("${name}") is async. ${why} ${next}`, name);
}

function invalid(message: string, name: string): PawlError {
  return new PawlError("invalid_argument", message, { fields: { transaction: name } });
}
