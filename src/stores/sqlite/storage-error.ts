// What an error of SQLite means to whoever runs Pawl, and what to do next.
import { type ErrorCode, PawlError } from "../../base/errors.ts";

// The primary result codes of https://www.sqlite.org/rescode.html that are told apart.
const BUSY = 5;
const LOCKED = 6;
const CORRUPT = 11;
const FULL = 13;
const NOT_A_DATABASE = 26;

/** These blame the statement or its values, not the file or the disk. */
const STATEMENT_FAULTS: ReadonlySet<number> = new Set([18, 19, 20, 25]);

interface Meaning {
  readonly code: ErrorCode;
  readonly what: string;
  readonly next: string;
}

const UNAVAILABLE = "storage_unavailable";
const MEANINGS: ReadonlyMap<number, Meaning> = new Map([
  [
    BUSY,
    {
      code: UNAVAILABLE,
      what: "is locked by another process",
      next: "Find the process that holds it with `pawl doctor`.",
    },
  ],
  [
    LOCKED,
    {
      code: UNAVAILABLE,
      what: "is locked by this process",
      next: "Close whatever else in this process has the file open.",
    },
  ],
  [7, { code: UNAVAILABLE, what: "needs more memory than there is", next: "Give the process more memory." }],
  [
    8,
    {
      code: UNAVAILABLE,
      what: "is read-only",
      next: "Make the file, its folder and the disk writable for this process.",
    },
  ],
  [10, { code: UNAVAILABLE, what: "had an I/O error", next: "Check the disk and the system log." }],
  [
    FULL,
    { code: UNAVAILABLE, what: "has no room left: the disk is full", next: "Free some space; nothing else is needed." },
  ],
  [
    14,
    {
      code: UNAVAILABLE,
      what: "cannot be opened",
      next: "Check the path, and that this process may write to the file and its folder.",
    },
  ],
  [
    CORRUPT,
    {
      code: "corrupted_journal",
      what: "is damaged",
      next: "Restore a backup, or see what `pawl doctor` can still read.",
    },
  ],
  [
    NOT_A_DATABASE,
    {
      code: "not_a_store",
      what: "is not a Pawl database, or its beginning is damaged",
      next: "Give another path, or restore a backup.",
    },
  ],
]);

// The package leaves the code out of errors that come while rows are read; SQLite's words for them never change.
const CODE_OF_TEXT: ReadonlyMap<string, number> = new Map([
  ["database is locked", BUSY],
  ["database table is locked", LOCKED],
  ["out of memory", 7],
  ["attempt to write a readonly database", 8],
  ["disk I/O error", 10],
  ["database disk image is malformed", CORRUPT],
  ["database or disk is full", FULL],
  ["unable to open database file", 14],
  ["file is not a database", NOT_A_DATABASE],
]);

/** SQLite's primary result code, if the error is one of SQLite. */
export function sqliteCode(error: unknown): number | null {
  const { errcode, code, message } = (error ?? {}) as { errcode?: unknown; code?: unknown; message?: unknown };
  if (typeof errcode === "number") return errcode & 0xff;
  return code === "ERR_SQLITE_ERROR" ? (CODE_OF_TEXT.get(String(message)) ?? 1) : null;
}

/**
 * True for the errors of a COMMIT that surely left nothing behind: the file was busy, or there was no room for all frames of the
 * transaction. The last of them is what makes it count, and it is written last.
 */
export function isWithoutEffect(error: unknown): boolean {
  return isBusy(error) || sqliteCode(error) === FULL;
}

export function isDamage(error: unknown): boolean {
  return sqliteCode(error) === CORRUPT;
}

export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === BUSY || code === LOCKED;
}

/** True for errors that concern the file as a whole, whatever statement met them first. */
export function isStorageFault(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== null && !STATEMENT_FAULTS.has(code);
}

/** Names the file, what is wrong with it and what to do. Errors that are not SQLite's are returned as they are. */
export function storageError(error: unknown, path: string, detail = ""): unknown {
  if (isUnreadableNumber(error)) return fromMeaning(MEANINGS.get(CORRUPT) as Meaning, error, path, detail);
  const code = sqliteCode(error);
  if (code === null) return error;
  const unknown: Meaning = { code: UNAVAILABLE, what: "refused a statement", next: "Run `pawl doctor`." };
  return fromMeaning(MEANINGS.get(code) ?? unknown, error, path, detail);
}

/** A COMMIT that fails may have taken effect all the same: nothing may be concluded before the store was read again (P17). */
export function unknownOutcome(error: unknown, path: string): PawlError {
  return new PawlError(
    "unknown_outcome",
    `The commit to ${path} failed at its last moment (${messageOf(error)}), so it may or may not be there. Pawl reads the file again before it goes on. If this repeats, check the disk and the system log.`,
    { fields: { path, errcode: sqliteCode(error) }, cause: error },
  );
}

function fromMeaning({ code, what, next }: Meaning, error: unknown, path: string, detail: string): PawlError {
  const more = detail === "" ? "" : ` ${detail}`;
  return new PawlError(code, `The database ${path} ${what} (${messageOf(error)}).${more} ${next}`, {
    fields: { path, errcode: sqliteCode(error) },
    cause: error,
  });
}

/** No number that Pawl writes is that large, so a damaged row is what remains. */
export function isUnreadableNumber(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  return code === "ERR_OUT_OF_RANGE" || String(message).startsWith("Value is too large to be represented");
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
