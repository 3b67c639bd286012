// Where a reader of streams is, as a text that it can keep: the entries that it has taken in, and how far it has read what is under way.
import { PawlError } from "../base/errors.ts";

export interface StreamCursor {
  readonly run: string;
  /** The one step that it reads, if it is one. */
  readonly key: string | null;
  /** The next entry. */
  readonly from: number;
  /** The oldest entry that began something which has not ended. */
  readonly since: number;
  /** By the entry that began it: the next chunk of each stream of which something was handed out that may still count. */
  readonly next: readonly (readonly [seq: number, n: number])[];
}

const VERSION = 1;

export function cursorText({ run, key, from, since, next }: StreamCursor): string {
  return Buffer.from(JSON.stringify([VERSION, run, key, from, since, ...next.flat()])).toString("base64url");
}

/** Reads one that was given for this run and this key. */
export function readCursor(text: string, run: string, key: string | null): StreamCursor {
  const cursor = parsed(text);
  if (cursor === null) throw refused(run, "it is none that Pawl has made, or only a part of one");
  if (cursor.run !== run) throw refused(run, `it belongs to run ${cursor.run}`);
  if (cursor.key === key) return cursor;
  const whose = cursor.key === null ? "of all steps" : `of step "${cursor.key}" alone`;
  throw refused(run, `it belongs to a stream ${whose}`);
}

function parsed(text: unknown): StreamCursor | null {
  try {
    const parts = JSON.parse(Buffer.from(text as string, "base64url").toString("utf8")) as unknown[];
    const [version, run, key, ...numbers] = parts;
    if (version !== VERSION || typeof run !== "string" || !(key === null || typeof key === "string")) return null;
    if (numbers.length % 2 !== 0 || !numbers.every(isCount)) return null;
    const [from = 0, since = 0, ...rest] = numbers;
    const next = rest.flatMap((seq, i) => (i % 2 === 0 ? [[seq, rest[i + 1] as number] as const] : []));
    return numbers.length < 2 || since > from ? null : { run, key, from, since, next };
  } catch {
    return null;
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function refused(
  run: string,
  why: string,
  code: "cursor_expired" | "invalid_argument" = "invalid_argument",
): PawlError {
  return new PawlError(
    code,
    `The cursor cannot be used for the stream of run ${run}: ${why}. Give the last one that this stream had, unchanged, or none to read from the beginning.`,
    { fields: { run, field: "after" } },
  );
}

/** The store no longer has what the reader has seen. */
export function cursorAhead(run: string): PawlError {
  return refused(
    run,
    "the run's journal ends before it, so the store was put back to an earlier state",
    "cursor_expired",
  );
}
