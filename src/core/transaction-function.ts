import { PawlError } from "../base/errors.ts";
import type { StepInfo } from "./context.ts";
import type { Sql } from "./sql.ts";
import type { Store } from "./store.ts";

export type TransactionFunction = (sql: Sql, info: StepInfo) => unknown;

export function assertFunction(name: string, fn: unknown): void {
  if (typeof fn === "function") return;
  const shown = `ctx.transaction("${name}"`;
  throw invalid(`${shown}) needs a function as second argument: ${shown}, (sql) => …).`, name);
}

/**
 * Why the function cannot run in this store, before it has: there are no transactions, or it is async where none may wait (P22). The step fails
 * with it, and that is recorded: replay elsewhere must not depend on the store.
 */
export function whyNot(
  transactions: Store["transactions"] | null,
  name: string,
  fn: TransactionFunction,
): PawlError | null {
  if (transactions === undefined || transactions === null) {
    const next = "Use a SQLite file or PostgreSQL, in tests as well, or a step whose function is idempotent.";
    return invalid(`ctx.transaction("${name}") needs a store with transactions, and this one has none. ${next}`, name);
  }
  return transactions === "synchronous" && fn.constructor.name === "AsyncFunction" ? mayNotWait(name) : null;
}

/** Refuses a promise where none may be waited for: its transaction is over, whatever becomes of it. */
export function assertNoPromise(name: string, value: unknown): void {
  if (typeof (value as { then?: unknown } | null)?.then !== "function") return;
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
