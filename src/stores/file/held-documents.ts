// Documents that somebody has changed by hand, and how they are taken over (C-23).
import { hash } from "node:crypto";
import { join } from "node:path";
import { PawlError } from "../../base/errors.ts";
import { checksum } from "../../core/checksum.ts";
import type { StoredEntry } from "../../core/journal.ts";
import type { MemoryRun } from "../memory/tables.ts";
import { canonicalText } from "./canonical.ts";
import type { Directory } from "./directory.ts";
import { folderName } from "./folder-name.ts";
import { editedMessage } from "./holdings.ts";
import { DOCUMENT, type EditedDocument, readDocument } from "./read-document.ts";
import { documentTextWith, type Readable, readableOf } from "./run-document.ts";

/** A document that does not match its checksum. Its run is held until somebody accepts it. */
export interface HeldDocument {
  readonly run: string;
  readonly file: string;
  /** What is the matter, and what to do. */
  readonly message: string;
  /** As it stands in the file: the readable fields, `engine` and `checksum`. */
  readonly document: Readonly<Record<string, unknown>>;
  /** The readable fields that say something else than the journal does, by their paths. */
  readonly edits: readonly string[];
}

export interface AcceptOptions {
  readonly by: string;
  readonly reason: string;
}

export function heldDocuments(directory: Directory): HeldDocument[] {
  return [...directory.documents()].flatMap((found) => (found.kind === "edited" ? [heldDocument(found)] : []));
}

function heldDocument({ run, file, document, kept }: EditedDocument): HeldDocument {
  const { engine: _engine, checksum: _checksum, ...readable } = document;
  return { run, file, message: editedMessage(run, file), document, edits: differences(readable, readableOf(kept.run)) };
}

/**
 * Signs a document again as it stands, and says in it who did so and why. Its journal must be whole: entries are never taken over from a person, since
 * nobody could tell any more what has happened.
 */
export function acceptDocument(directory: Directory, run: string, options: AcceptOptions, now: number): HeldDocument {
  assertSaid(options);
  directory.own("Accepting a document");
  const found = readDocument(directory.runs, folderName(run));
  if (found === null) throw notHeld(run, "it has no document");
  if (found.kind === "damaged") throw found.error;
  if (found.kind === "sound") throw notHeld(run, "its document is as Pawl has written it");
  assertChain(found.kept.run, found.file);
  const { engine: _engine, checksum: _checksum, ...readable } = found.document;
  const { run: kept, share } = found.kept;
  const accepted = [...share.accepted, { at: now, by: options.by, reason: options.reason }];
  const text = documentTextWith(readable, { run: kept, share: { ...share, accepted } });
  directory.forget();
  directory.disk.replace([{ path: join(directory.folderOf(run), DOCUMENT), text }]);
  return heldDocument(found);
}

function assertSaid({ by, reason }: AcceptOptions): void {
  for (const [field, value] of Object.entries({ by, reason })) {
    if (typeof value === "string" && value.trim() !== "") continue;
    throw new PawlError("invalid_argument", `"${field}" is missing. Say who takes the document over, and why.`, {
      fields: { field },
    });
  }
}

function notHeld(run: string, why: string): PawlError {
  return new PawlError("invalid_argument", `There is nothing to accept for run ${run}: ${why}.`, { fields: { run } });
}

const digest = (data: string | Uint8Array): string => hash("sha256", data, "base64url").slice(0, 22);

function assertChain({ row, journal }: MemoryRun, file: string): void {
  let previous = row.id;
  for (const [index, entry] of journal.entries()) {
    if (checksum({ digest }, previous, entry) !== entry.hash) throw broken(row.id, file, entry, index);
    previous = entry.hash;
  }
  const isCut = journal.length < row.head;
  const last = journal[row.head - 1];
  if (isCut || (row.headHash !== "" && last?.hash !== row.headHash)) throw broken(row.id, file, last, row.head - 1);
}

function broken(run: string, file: string, entry: StoredEntry | undefined, index: number): PawlError {
  const what = entry === undefined ? "is missing" : `(${entry.type}) does not match its checksum`;
  return new PawlError(
    "corrupted_journal",
    `The document ${file} cannot be accepted: engine.journal[${index}] ${what}. Entries of a journal cannot be changed by hand. Put a good copy in its place; change statuses above "engine" instead.`,
    { fields: { run, file, path: `engine.journal[${index}]`, seq: index } },
  );
}

/** The paths at which two readable parts differ. */
function differences(a: unknown, b: unknown, path = ""): string[] {
  if (canonicalText(a ?? null) === canonicalText(b ?? null)) return [];
  if (!isRecord(a) || !isRecord(b)) return [path];
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
  return keys.flatMap((key) => differences(a[key], b[key], path === "" ? key : `${path}.${key}`));
}

function isRecord(value: unknown): value is Readable {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
