// Documents that somebody has changed by hand, or that are damaged, and the ways on: take the document over, write it again from its journal, or set
// it aside (C-1, C-23). Nothing is ever lost by one of them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PawlError } from "../../base/errors.ts";
import type { ClaimedRun, RunCommit, RunRow } from "../../core/store.ts";
import { folderName } from "../../files/folder-name.ts";
import { takeOne } from "../memory/claim.ts";
import { Batch } from "./batch.ts";
import { canonicalText } from "./canonical.ts";
import { commit } from "./commit.ts";
import type { Directory } from "./directory.ts";
import type { NewContent } from "./disk.ts";
import { editedMessage, holdingsOf, releaseAbandoned } from "./holdings.ts";
import { assertWhole, faultOf } from "./journal-fault.ts";
import {
  type DamagedDocument,
  DOCUMENT,
  type EditedDocument,
  type FoundDocument,
  readDocument,
} from "./read-document.ts";
import { documentText, type KeptRun, type Readable, readableOf } from "./run-document.ts";

/** A document that does not match its checksum, or is damaged. Its run is held until somebody decides. */
export interface HeldDocument {
  readonly run: string;
  readonly file: string;
  readonly kind: "edited" | "damaged";
  /** What is the matter, and what to do. */
  readonly message: string;
  /** As it stands in the file: the readable fields, `engine` and `checksum`; of one that is no JSON, nothing. */
  readonly document: Readable;
  /** The readable fields that say something else than the journal does, by their paths; of a damaged one `null`. */
  readonly edits: readonly string[] | null;
  /** The row, if the engine's part can be read. */
  readonly row: RunRow | null;
  /** What is wrong with its journal, if that can be read: then nothing can be made of it. */
  readonly fault: PawlError | null;
}

/** Who decides about a document, and why. */
export interface Decider {
  /** Who decides. */
  readonly by: string;
  /** Why. */
  readonly reason: string;
}

/** Owns a run for as long as its document is taken over; no document ever names it. */
const TAKER = "accept";

export function heldDocuments(directory: Directory): HeldDocument[] {
  return [...directory.documents()].flatMap((found) => heldDocument(found) ?? []);
}

function heldDocument(found: FoundDocument): HeldDocument | null {
  const { run, file, kind } = found;
  if (kind === "sound") return null;
  const document = found.document ?? {};
  const row = found.kept?.run.row ?? null;
  const fault = found.kept === null ? null : faultOf(found.kept.run, file);
  const common = { run, file, kind, document, row, fault };
  if (kind === "damaged") return { ...common, message: found.error.message, edits: null };
  const { engine: _engine, checksum: _checksum, ...readable } = document;
  return { ...common, message: editedMessage(run, file), edits: differences(readable, readableOf(found.kept.run)) };
}

/**
 * Signs a document again, and says in it who did so and why. Its journal must be whole: entries are never taken over from a person, since nobody
 * could tell any more what has happened.
 */
export function acceptDocument(
  directory: Directory,
  run: string,
  who: Decider,
  now: number,
  write?: (run: ClaimedRun) => RunCommit,
): HeldDocument {
  assertSaid(who);
  const found = heldIn(directory, run, "Accepting a document");
  if (found.kind === "damaged") throw found.error;
  assertWhole(found.kept.run, found.file);
  const believed = acceptedBy(found.kept, who, now);
  if (write === undefined) directory.overwrite([contentOf(directory, run, documentText(believed))]);
  else directory.overwrite(rewritten(directory, believed, write, now));
  return heldDocument(found) as HeldDocument;
}

/** Writes a document again from its journal; what stood in the file is kept aside first. */
export function rebuildDocument(directory: Directory, run: string, who: Decider, now: number): void {
  assertSaid(who);
  const found = heldIn(directory, run, "Rebuilding a document");
  const { kept, file } = found;
  if (kept === null) throw (found as DamagedDocument).error;
  assertWhole(kept.run, file);
  const why = `Rebuilt from its journal by ${who.by}: ${who.reason}`;
  directory.quarantine.keep(file, readFileSync(file, "utf8"), why);
  directory.overwrite([contentOf(directory, run, documentText(acceptedBy(kept, who, now)))]);
}

/**
 * Lets another run have the keys that lead to a held one. Its document still names them: of two documents that name a key, the one that came by it
 * last has it, and one that is held has it only if nobody else does.
 */
export function yieldKeys(directory: Directory, run: string, who: Decider): void {
  assertSaid(who);
  heldIn(directory, run, "Starting a run afresh");
  for (const keys of directory.own("Starting a run afresh").tables.keys.values())
    for (const [key, holder] of keys) if (holder.run === run) keys.delete(key);
}

/** Moves the folder of a held run to the archive, with its document as it is. */
export function setAside(directory: Directory, run: string, who: Decider): void {
  assertSaid(who);
  const { file } = heldIn(directory, run, "Setting a document aside");
  directory.quarantine.keep(file, readFileSync(file, "utf8"), `Set aside by ${who.by}: ${who.reason}`);
  directory.forget();
  directory.moveToArchive(run);
}

function heldIn(directory: Directory, run: string, what: string): EditedDocument | DamagedDocument {
  const { tables } = directory.own(what);
  if (tables.runs.has(run)) throw notHeld(run, "this process goes on from what it knows of it");
  const found = readDocument(directory.runs, folderName(run));
  if (found === null) throw notHeld(run, "it has no document");
  if (found.kind !== "sound") return found;
  // Somebody has put a good copy in its place meanwhile.
  directory.forget();
  throw notHeld(run, "its document is as Pawl has written it");
}

function acceptedBy({ run, share }: KeptRun, { by, reason }: Decider, at: number): KeptRun {
  return { run, share: { ...share, accepted: [...share.accepted, { at, by, reason }] } };
}

function contentOf(directory: Directory, run: string, text: string): NewContent {
  return { path: join(directory.folderOf(run), DOCUMENT), text };
}

/** What the documents come to when this one is believed and `write` has its way with the run. */
function rewritten(
  directory: Directory,
  believed: KeptRun,
  write: (run: ClaimedRun) => RunCommit,
  now: number,
): readonly NewContent[] {
  const { id } = believed.run.row;
  const others = [...directory.documents()].filter(({ run }) => run !== id);
  const sound = { kind: "sound", run: id, file: "", checksum: "", kept: believed, stamp: "" } as const;
  const workers = new Map(directory.workers);
  const holdings = holdingsOf([...others, sound], directory.look().leftovers, workers);
  releaseAbandoned(holdings, now);
  workers.set(TAKER, {} as never);
  const claimed = takeOne(holdings.tables, TAKER, id, true);
  if (claimed === null) throw notHeld(id, "it has ended");
  const batch = new Batch(holdings, (run) => join(directory.folderOf(run), DOCUMENT));
  const [verdict] = commit(holdings, batch, { worker: TAKER, runs: [write(claimed)] }, now);
  if (verdict?.kind === "applied") return batch.contents();
  throw verdict?.kind === "failed" ? verdict.error : notHeld(id, "what it holds contradicts what others have recorded");
}

function assertSaid({ by, reason }: Decider): void {
  for (const [field, value] of Object.entries({ by, reason })) {
    if (typeof value === "string" && value.trim() !== "") continue;
    throw new PawlError("invalid_argument", `"${field}" is missing. Say who decides about the document, and why.`, {
      fields: { field },
    });
  }
}

function notHeld(run: string, why: string): PawlError {
  return new PawlError("invalid_argument", `There is nothing to decide about the document of run ${run}: ${why}.`, {
    fields: { run },
  });
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
