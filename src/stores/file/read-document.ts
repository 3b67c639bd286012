// Reading a document from the disk: it is sound, or it was edited by hand, or it cannot be read at all. Each is a value: one bad document must not
// keep the others from going on.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { PawlError, readProperty } from "../../base/errors.ts";
import { parseJson, RepeatedKey } from "../../base/json-text.ts";
import { folderName } from "../../files/folder-name.ts";
import { checksumOf } from "./canonical.ts";
import { unavailable } from "./disk.ts";
import { documentShape, engineShape } from "./document-shape.ts";
import { type KeptRun, type Readable, runOf } from "./run-document.ts";
import { Misfit, type Shape } from "./shape.ts";

export const DOCUMENT = "state.json";

export type FoundDocument = SoundDocument | EditedDocument | DamagedDocument;

export interface SoundDocument {
  readonly kind: "sound";
  readonly run: string;
  readonly file: string;
  readonly checksum: string;
  readonly kept: KeptRun;
  readonly stamp: string;
}

/** Everything is where it should be, but not all of it was written by Pawl. */
export interface EditedDocument {
  readonly kind: "edited";
  readonly run: string;
  readonly file: string;
  readonly kept: KeptRun;
  readonly document: Readable;
}

export interface DamagedDocument {
  readonly kind: "damaged";
  /** As far as it can be told. */
  readonly run: string;
  readonly file: string;
  /** `null`: the system does not give it. */
  readonly text: string | null;
  readonly error: PawlError;
  /** What it holds, if it is JSON at all. */
  readonly document: Readable | null;
  /** The engine's part, if nothing is wrong with that. */
  readonly kept: KeptRun | null;
  /** Keys that lead to it, if at least these can be read: nobody else may take them. */
  readonly keys: readonly { readonly space: string; readonly key: string; readonly digest: string }[];
}

/** The document in a run's folder; `null` if there is none. */
export function readDocument(runs: string, folder: string): FoundDocument | null {
  const file = join(runs, folder, DOCUMENT);
  let text: string | null = null;
  try {
    const found = contentOf(file);
    if (found === null) return null;
    text = found.text;
    return judge(file, folder, found);
  } catch (error) {
    if (error instanceof PawlError) throw error;
    const misfit = error instanceof Misfit ? error : new Misfit("", text?.slice(0, 40) ?? "", "JSON");
    return damaged(file, folder, text, misfit);
  }
}

function damaged(file: string, folder: string, text: string | null, misfit: Misfit): DamagedDocument {
  const document = quietJson(text ?? "");
  const kept = soundEngine(document, folder);
  const named = kept?.run.row.id ?? document?.["workflow_id"];
  const run = typeof named === "string" && folderName(named) === folder ? named : folder;
  return {
    kind: "damaged",
    run,
    file,
    text,
    error: invalidDocument(file, misfit, run, kept !== null),
    document,
    kept,
    keys: keysIn(document),
  };
}

/** The engine's part of a document whose readable part is not what it should be. */
function soundEngine(document: Readable | null, folder: string): KeptRun | null {
  if (document === null) return null;
  try {
    engineShape(document["engine"], "engine");
    const kept = runOf(document);
    return folderName(kept.run.row.id) === folder ? kept : null;
  } catch {
    return null;
  }
}

function judge(file: string, folder: string, { text, stamp }: Content): FoundDocument {
  const document = parse(text);
  documentShape(document, "");
  const kept = runOf(document);
  const run = kept.run.row.id;
  if (document["workflow_id"] !== run) throw new Misfit("workflow_id", document["workflow_id"], run);
  if (folderName(run) !== folder) throw new Misfit("engine.row.id", run, `the run of the folder "${folder}"`);
  const checksum = checksumOf(document);
  if (document["checksum"] !== checksum) return { kind: "edited", run, file, kept, document };
  return { kind: "sound", run, file, checksum, kept, stamp };
}

/** Refuses a file of the store that is not what it should be. */
export function checkFile(file: string, text: string, shape: Shape): Readable {
  try {
    const value = parse(text);
    shape(value, "");
    if (value["checksum"] !== undefined && value["checksum"] !== checksumOf(value))
      throw new Misfit("checksum", value["checksum"], "the checksum of what stands above it");
    return value;
  } catch (error) {
    if (error instanceof Misfit) throw invalidDocument(file, error, null, false);
    throw error;
  }
}

function parse(text: string): Readable {
  try {
    return parseJson(text) as Readable;
  } catch (error) {
    if (error instanceof RepeatedKey) throw new Misfit(error.path, "there twice", "every name once in an object");
    throw new Misfit("", text.slice(0, 40), `JSON (${String(readProperty(error, "message"))})`);
  }
}

function invalidDocument(
  file: string,
  { path, found, allowed, message }: Misfit,
  run: string | null,
  isMendable: boolean,
): PawlError {
  const mend = isMendable ? ` Or have it written again from its journal: pawl state rebuild ${run}.` : "";
  return new PawlError(
    "invalid_state_document",
    `${file} is no document that Pawl can go on with. ${message} Correct it or put a good copy in its place, then start again; nothing was deleted.${mend}`,
    { fields: { file, path, found, allowed, ...(run !== null && { run }) } },
  );
}

interface Content {
  readonly text: string;
  readonly stamp: string;
}

function contentOf(file: string): Content | null {
  try {
    // The stamp first: what is written between the two reads is noticed later, not missed.
    const stamp = stampOf(file) ?? "";
    return { text: readFileSync(file, "utf8"), stamp };
  } catch (error) {
    const code = readProperty(error, "code");
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    if (OF_THE_FILE.has(code))
      throw new Misfit("", `not to be read (${String(code)})`, "a file that this process can read");
    throw unavailable(error);
  }
}

/** Errors that say something about one file: another one may be read. */
const OF_THE_FILE: ReadonlySet<unknown> = new Set([
  "EACCES",
  "EPERM",
  "EIO",
  "EISDIR",
  "ELOOP",
  "ERR_FS_FILE_TOO_LARGE",
  "ERR_STRING_TOO_LONG",
]);

/** What changes with every write of a file; `null` if there is none. */
export function stampOf(file: string): string | null {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.ino}:${stat.mtimeNs}:${stat.size}`;
}

function quietJson(text: string): Readable | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Readable) : null;
  } catch {
    return null;
  }
}

function keysIn(document: unknown): DamagedDocument["keys"] {
  const engine = readProperty(document, "engine");
  const keys = readProperty(engine, "keys");
  return Array.isArray(keys) ? keys.filter(isKey) : [];
}

function isKey(value: unknown): value is DamagedDocument["keys"][number] {
  return ["space", "key", "digest"].every((field) => typeof readProperty(value, field) === "string");
}
