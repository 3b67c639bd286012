// Values on their way in and out of a store: encoded, sealed with their address, opened again.
import { decode, encode } from "../base/codec.ts";
import type { Codec, FieldAddress } from "../base/envelope.ts";
import { hasCode, messageOf, PawlError, readProperty } from "../base/errors.ts";
import { keyMissing, keyOf } from "../base/sealed-text.ts";
import { checksum } from "./checksum.ts";
import { assertUnderstood } from "./demands.ts";
import { encodePayload, encodeRecord } from "./draft.ts";
import { isWellFormed } from "./entry-shape.ts";
import type { Host } from "./host.ts";
import type { Entry, StoredEntry } from "./journal.ts";
import { LIMITS } from "./limits.ts";
import type { RunRow } from "./store.ts";

export function sealValue(codec: Codec, value: unknown, at: FieldAddress, path: string): string | Uint8Array {
  return codec.seal(encodePayload(value, path), at);
}

export function openValue(codec: Codec, data: string | Uint8Array | null, at: FieldAddress): unknown {
  if (data === null) return null;
  const text = codec.unseal(data, at);
  try {
    return decode(text);
  } catch (cause) {
    // A process without any key sees what others have sealed as it is kept.
    const key = keyOf(text);
    throw key === null ? unreadable(at, cause) : keyMissing(key, at);
  }
}

/** A value as whoever reads it will have it: what is taken out on the way to the store must not look like a change later. */
export function asKept<T>(codec: Codec, value: T, at: FieldAddress, path: string): T {
  return openValue(codec, codec.seal(encodeRecord(value, path), at), at) as T;
}

function unreadable({ run, seq, field }: FieldAddress, cause: unknown): PawlError {
  const place = seq === -1 ? field : `entry ${seq}`;
  return new PawlError("corrupt_value", `In run ${run}, ${place}: ${messageOf(cause)}`, {
    fields: { run, seq, field },
    cause,
  });
}

/** Opens stored entries without asking whether they are whole. */
export function openEntry(codec: Codec, run: string, stored: StoredEntry): Entry {
  const payload = openValue(codec, stored.data, { run, seq: stored.seq, field: "data" });
  return { seq: stored.seq, at: stored.at, type: stored.type, key: openKey(codec, stored), payload };
}

export function openKey({ names }: Codec, { key }: StoredEntry): string | null {
  return names === undefined || key === null ? key : names.open(key);
}

/**
 * Opens a journal from its first entry on; a gap, a lost end, a damaged or an edited row is found and named (E-22, P35).
 * `mayBeTrimmed` accepts entries that are not there, all but the first; the first one behind a gap has lost what its checksum stands on and
 * is taken as it is.
 */
export function openJournal(
  host: Host,
  codec: Codec,
  { id, head, headHash }: Pick<RunRow, "id" | "head" | "headHash">,
  stored: readonly StoredEntry[],
  mayBeTrimmed = false,
): Entry[] {
  let previous: string | null = id;
  let next = 0;
  const isGap = (seq: number) => mayBeTrimmed && next > 0 && seq > next;
  const entries = stored.map((entry) => {
    if (entry.seq !== next && !isGap(entry.seq)) throw missing(id, next);
    if (entry.seq !== next) previous = null;
    assertSound(host, { id, head, headHash }, entry, previous);
    previous = entry.hash;
    next = entry.seq + 1;
    return openSound(codec, id, entry);
  });
  if (next < head && !isGap(head)) throw missingEnd(id, next);
  return entries;
}

/** Refuses an entry that is not what was written. `previous`: the checksum before it; `null` if that was trimmed. */
export function assertSound(
  host: Host,
  { id, head, headHash }: Pick<RunRow, "id" | "head" | "headHash">,
  entry: StoredEntry,
  previous: string | null,
): void {
  const sum = previous === null ? entry.hash : checksum(host, previous, entry);
  const isReplaced = entry.seq === head - 1 && headHash !== "" && headHash !== sum;
  if (sum !== entry.hash || isReplaced) throw damaged(id, entry);
}

/** What another process can open as it is. */
const LEFT_TO_OTHERS = ["key_missing", "newer_journal"] as const;

/** A checksum proves that a row is what was written, not that it can be read or makes sense. */
function openSound(codec: Codec, run: string, entry: StoredEntry): Entry {
  let opened: Entry;
  try {
    // Before its payload, which may be of a kind that is not known here either.
    assertUnderstood(run, entry.seq, openKey(codec, entry));
    opened = openEntry(codec, run, entry);
  } catch (cause) {
    throw LEFT_TO_OTHERS.some((code) => hasCode(cause, code)) ? cause : malformed(run, entry, cause);
  }
  if (!isWellFormed(opened)) throw malformed(run, entry);
  return opened;
}

/** Whether this build can open an entry that another one has found damaged. `previous`: the one before it. */
export function opensHere(
  host: Host,
  codec: Codec,
  run: string,
  entry: StoredEntry,
  previous: StoredEntry | undefined,
): boolean {
  try {
    assertSound(host, { id: run, head: 0, headHash: "" }, entry, previous?.hash ?? run);
    openSound(codec, run, entry);
    return true;
  } catch {
    return false;
  }
}

function missing(run: string, seq: number): PawlError {
  return new PawlError(
    "journal_entry_missing",
    `Run ${run} has no journal entry ${seq}, though one was recorded. Restore the store from a backup, or fork the run before that entry.`,
    { fields: { run, seq } },
  );
}

function missingEnd(run: string, seq: number): PawlError {
  return new PawlError(
    "journal_entry_missing",
    `Run ${run} has no journal entry ${seq} nor any after it, though more were recorded. Restore the store from a backup, or fork the run before that entry. ` +
      '"retry" goes on without them: what they recorded is done again.',
    { fields: { run, seq } },
  );
}

function malformed(run: string, entry: StoredEntry, cause?: unknown): PawlError {
  return new PawlError(
    "corrupted_journal",
    `Journal entry ${entry.seq} (${entry.type}) of run ${run} has a payload that cannot be its own. Restore the store from a backup, or fork the run before that entry.`,
    { fields: { run, seq: entry.seq, type: entry.type }, cause },
  );
}

function damaged(run: string, entry: StoredEntry): PawlError {
  return new PawlError(
    "corrupted_journal",
    `Journal entry ${entry.seq} (${entry.type}${entry.key === null ? "" : ` ${entry.key}`}) of run ${run} does not match its checksum: it was damaged or edited. ` +
      "Restore the store from a backup, or fork the run before that entry.",
    { fields: { run, seq: entry.seq, type: entry.type } },
  );
}

/**
 * The text of a failure as it is recorded. Errors often drag along what cannot be (sockets, requests): then their name, message, code and cause
 * remain, never a second failure while recording the first.
 */
export function encodeFailure<P extends { readonly error: unknown }>(payload: P): string {
  try {
    return encode(payload, { maxBytes: LIMITS.valueBytes });
  } catch {
    return encode({ ...payload, error: plainError(payload.error, 0) });
  }
}

/** The error itself if it can be recorded, otherwise what can be of it. */
export function recordable(error: unknown): unknown {
  try {
    encode(error, { maxBytes: LIMITS.valueBytes });
    return error;
  } catch {
    return plainError(error, 0);
  }
}

function plainError(error: unknown, depth: number): Error {
  const read = (key: string) => readProperty(error, key);
  const plain = new Error(shortened(messageOf(error)));
  const [name, code, status, cause] = [read("name"), read("code"), read("status"), read("cause")];
  plain.name = typeof name === "string" ? shortened(name) : "Error";
  if (typeof code === "number") Object.assign(plain, { code });
  if (typeof code === "string") Object.assign(plain, { code: shortened(code) });
  if (typeof status === "number") Object.assign(plain, { status });
  if (cause !== undefined && depth < 4) plain.cause = plainError(cause, depth + 1);
  return plain;
}

function shortened(text: string): string {
  return text.slice(0, 10_000);
}
