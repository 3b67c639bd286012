// What an error of the database means: nothing was done, or nobody knows, and what to do next.
import { hasCode, messageOf, PawlError } from "../../base/errors.ts";

interface DatabaseFault {
  readonly code: string;
  readonly severity: string;
}

/** An answer of the server, as opposed to the loss of it. */
function faultOf(error: unknown): DatabaseFault | null {
  const { code, severity } = (error ?? {}) as { readonly code?: unknown; readonly severity?: unknown };
  return typeof code === "string" && typeof severity === "string" ? { code, severity } : null;
}

/**
 * True if the server said that the statement failed and goes on: nothing of it was applied. Its last words before it hangs up say nothing, nor does
 * what a pooler says in its place when it has lost the server (08).
 */
export function isRefusal(error: unknown): boolean {
  const fault = faultOf(error);
  return fault?.severity === "ERROR" && !fault.code.startsWith("08");
}

/**
 * True for errors that the statement or its values cause, whatever the state of the server: syntax and access (42), data (22), constraints (23),
 * what a function raised (P0), and limits of the program (54) or of the driver.
 */
export function isStatementFault(error: unknown): boolean {
  const code = faultOf(error)?.code ?? "";
  if (error instanceof RangeError) return true;
  return isRefusal(error) && ["22", "23", "42", "54", "P0"].some((group) => code.startsWith(group));
}

/**
 * True if a statement could not even be sent with the values that it was given: they have no text, are too large together (the driver says so), or
 * are too many or too few (the server does, with a code that otherwise tells of a broken connection).
 */
export function isUnfit(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof RangeError) return true;
  return faultOf(error) !== null && (error as { readonly routine?: unknown }).routine === "exec_bind_message";
}

/** The code of the server's answer; `null` for a lost one. */
export function sqlState(error: unknown): string | null {
  return faultOf(error)?.code ?? null;
}

/** True for errors that say nothing about the statement: no resources (53), shutdown (57P), the system (58), read-only (25006). */
export function isAway(state: string | null): boolean {
  return state !== null && (/^(53|57P|58|08)/.test(state) || state === "25006");
}

/** True if a lock could not be had in time. */
export function isLockLimit(error: unknown): boolean {
  return hasCode(error, "storage_unavailable") && sqlState((error as PawlError).cause) === "55P03";
}

/** True if a run was to be written for which the journal has no partition yet. */
export function isMissingPartition(error: unknown): boolean {
  return isRefusal(error) && faultOf(error)?.code === "23514";
}

const NEXT: Readonly<Record<string, string>> = {
  "25006": "It is read-only, as a standby is: it goes on when the database takes writes again.",
  "28": "Check user and password of the store's URL.",
  "3D": "Create the database, or correct the store's URL.",
  "42501": "Give the store's user the rights to create and use its schema.",
  "53100": "Its disk is full: free some space; nothing else is needed.",
  "55P03":
    "Somebody else has locked what it needs, perhaps in a transaction that is still open. Try again when that is over.",
  "53300": "It has too many connections: raise max_connections, or lower the number of workers.",
  "57014": "A timeout of the server ended the statement.",
  "57P03": "It is starting up or shutting down.",
};

function nextOf(code: string): string {
  return NEXT[code] ?? NEXT[code.slice(0, 2)] ?? "Check that it runs and can be reached.";
}

/** The database cannot be had now; surely nothing was applied. */
export function unavailable(error: unknown, where: string): PawlError {
  const code = faultOf(error)?.code ?? (error as { code?: unknown } | null)?.code ?? null;
  return new PawlError(
    "storage_unavailable",
    `The database ${where} cannot be used now (${messageOf(error)}). ${nextOf(String(code))}`,
    { fields: { database: where, sqlstate: code }, cause: error },
  );
}

/** The connection was lost before the answer came: nothing may be concluded before the store was read again (P17). */
export function lostAnswer(error: unknown, where: string): PawlError {
  return new PawlError(
    "unknown_outcome",
    `The connection to ${where} was lost before its answer came (${messageOf(error)}), so what was asked for may or may not be done. Pawl reads the store again before it goes on.`,
    { fields: { database: where }, cause: error },
  );
}
