import { PawlError } from "../base/errors.ts";

/** The half of `Sql` that a store does not have. */
export function notThisWay(method: string, store: string, instead: string): PawlError {
  return new PawlError("invalid_argument", `sql.${method} is not there on ${store}. Use ${instead}.`, {
    fields: { method, store },
  });
}

export function transactionRefused(word: string): PawlError {
  const shown = word.toUpperCase();
  return new PawlError(
    "invalid_argument",
    `${shown} was called inside a transaction of Pawl, which begins and ends it by itself. Throw an error to roll it back; use SAVEPOINT for a part of it.`,
    { fields: { statement: shown } },
  );
}

/** For statements that come too late, and for transactions that the database has ended by itself. */
export function transactionIsOver(cause?: unknown): PawlError {
  return new PawlError(
    "transaction_failed",
    "This transaction is over, or a statement of it has failed and its error was caught. Await every statement inside the function, and let errors of the database through, or use SAVEPOINT.",
    cause === undefined ? {} : { cause },
  );
}
