// Exports
// One run as one portable file: its row and its journal as plain JSON, whatever store and codec they came from. Values stand in it as the tagged
// JSON of `base/codec.ts`; children are named by id alone. What is redacted is gone, and says so where it stood.
import { encode } from "../base/codec.ts";
import { PawlError } from "../base/errors.ts";
import { type ChildStarted, ENDS, type Entry, type EntryType } from "../core/journal.ts";
import type { RunRow } from "../core/store.ts";
import { isTerminal, RUN_STATES } from "../core/transition.ts";
import type { Pawl } from "./pawl.ts";
import { type Redact, redactEntry } from "./redact.ts";
import { rowOf } from "./run.ts";

const EXPORT_FORMAT = "pawl-run";
const EXPORT_VERSION = 1;

/** A recorded run, out of its store: plain JSON that `replay` reads, also with another codec or a later version of Pawl. */
export interface ExportedRun {
  readonly format: typeof EXPORT_FORMAT;
  readonly formatVersion: number;
  readonly run: ExportedRow;
  /** Runs that this one has started; each is exported by itself. */
  readonly children: readonly string[];
  /** Whether values were taken out. */
  readonly isRedacted: boolean;
  readonly entries: readonly ExportedEntry[];
}

/** What an export keeps of a run's row: all that its code can see, and how it ended. */
export type ExportedRow = Pick<
  RunRow,
  | "id"
  | "workflow"
  | "version"
  | "state"
  | "traceId"
  | "key"
  | "tags"
  | "priority"
  | "parent"
  | "origin"
  | "createdAt"
  | "endedAt"
  | "deadline"
  | "stopReason"
>;

/** A journal entry whose payload is tagged JSON. */
export interface ExportedEntry {
  readonly seq: number;
  readonly at: number;
  readonly type: EntryType;
  readonly key: string | null;
  readonly value: unknown;
}

export interface ExportOptions {
  /**
   * Values to leave out: all of them, or those whose property, step, signal or state has one of these names. Keys, types, positions and times
   * stay.
   */
  readonly redact?: Redact;
}

/** Whatever knows runs: a `Pawl`, or a test engine. */
export type ExportSource = Pick<Pawl, "get" | "store">;

/** Reads a run with its journal, as one value that can be written to a file as JSON. */
export async function exportRun(pawl: ExportSource, id: string, options: ExportOptions = {}): Promise<ExportedRun> {
  const { row, journal } = await readRun(pawl, id);
  const entries = journal.map(exportEntry);
  const { redact } = options;
  return {
    format: EXPORT_FORMAT,
    formatVersion: EXPORT_VERSION,
    run: exportRow(row),
    children: journal.filter(({ type }) => type === "child.started").map(childOf),
    isRedacted: redact !== undefined,
    entries: redact === undefined ? entries : entries.map((entry) => redactEntry(entry, redact)),
  };
}

// A run that is being worked on moves between two reads.
const MAX_READS = 10;

async function readRun(pawl: ExportSource, id: string): Promise<{ row: RunRow; journal: Entry[] }> {
  let row = await rowOf(id, pawl.store);
  for (let reads = 1; ; reads++) {
    const journal = await pawl.get(id).journal();
    const after = await rowOf(id, pawl.store);
    if (reads === MAX_READS || (after.state === row.state && after.head === row.head)) return { row: after, journal };
    row = after;
  }
}

function exportRow(row: RunRow): ExportedRow {
  const { id, workflow, version, state, traceId, key, tags, priority } = row;
  const { parent, origin, createdAt, endedAt, deadline, stopReason } = row;
  const names = { id, workflow, version, state, traceId, key, tags, priority };
  return { ...names, parent, origin, createdAt, endedAt, deadline, stopReason };
}

function exportEntry({ seq, at, type, key, payload }: Entry): ExportedEntry {
  return { seq, at, type, key, value: JSON.parse(encode(payload)) };
}

function childOf({ payload }: Entry): string {
  return (payload as ChildStarted).child;
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isTime: Check = (value) => typeof value === "number" && Number.isFinite(value);
const isList: Check = (value) => Array.isArray(value);
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);

const TOP: Readonly<Record<string, Check>> = {
  run: isRecord,
  children: isList,
  isRedacted: (value) => typeof value === "boolean",
  entries: isList,
};

const ROW: Readonly<Record<keyof ExportedRow, Check>> = {
  id: isText,
  workflow: isText,
  version: isText,
  state: (value) => (RUN_STATES as readonly unknown[]).includes(value),
  traceId: isText,
  key: orNull(isText),
  tags: (value) => Array.isArray(value) && value.every(isText),
  priority: isTime,
  parent: orNull(isRecord),
  origin: orNull(isText),
  createdAt: isTime,
  endedAt: orNull(isTime),
  deadline: orNull(isTime),
  stopReason: orNull(isText),
};

const ENTRY: Readonly<Record<keyof ExportedEntry, Check>> = {
  seq: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  at: isTime,
  type: isText,
  key: orNull(isText),
  value: (value) => value !== undefined,
};

/** Checks that a value is an export that this version can read; names the first field that is not what it must be. */
export function readExport(value: unknown): ExportedRun {
  if (!isRecord(value) || value["format"] !== EXPORT_FORMAT) throw damaged("format", `is not "${EXPORT_FORMAT}"`);
  const version = value["formatVersion"];
  if (!Number.isSafeInteger(version)) throw damaged("formatVersion", "is not a whole number");
  if ((version as number) > EXPORT_VERSION) throw newer(version as number);
  checkFields(value, TOP, "");
  checkFields(value["run"] as Record<string, unknown>, ROW, "run.");
  checkEntries(value["entries"] as readonly unknown[]);
  const exported = value as unknown as ExportedRun;
  checkWhole(exported);
  return exported;
}

/** What the row and the list of children tell of the journal must be in it: one whose end is missing would pass for a run that goes on. */
function checkWhole({ run, children, entries }: ExportedRun): void {
  const started = entries.filter(({ type }) => type === "child.started").length;
  if (started !== children.length)
    throw damaged("children", `names ${children.length}, but the journal has started ${started}: entries are missing`);
  const begun = entries.findLastIndex(({ type }) => type === "run.started" || type === "run.continued");
  const hasEnd = entries.slice(begun).some(({ type }) => ENDS.some((end) => end === type));
  if (isTerminal(run.state) && !hasEnd)
    throw damaged(
      "entries",
      `end with "${entries.at(-1)?.type}", but the run has ${run.state}: its last entries are missing`,
    );
}

function checkEntries(entries: readonly unknown[]): void {
  let last = -1;
  for (const [index, entry] of entries.entries()) {
    const path = `entries[${index}]`;
    if (!isRecord(entry)) throw damaged(path, "is not an object");
    checkFields(entry, ENTRY, `${path}.`);
    const { seq, type } = entry as unknown as ExportedEntry;
    if (seq <= last) throw damaged(`${path}.seq`, `is ${seq}, though entry ${last} came before it`);
    if ((index === 0) !== (type === "run.started")) throw damaged(`${path}.type`, `is "${type}": a run starts once`);
    last = seq;
  }
  if (entries.length === 0) throw damaged("entries", "is empty: a journal has at least its start");
}

function checkFields(record: Record<string, unknown>, checks: Readonly<Record<string, Check>>, path: string): void {
  for (const [field, check] of Object.entries(checks)) {
    if (record[field] === undefined) throw damaged(`${path}${field}`, "is missing");
    if (!check(record[field])) throw damaged(`${path}${field}`, `cannot be ${shown(record[field])}`);
  }
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "undefined";
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An export that is not what `exportRun` writes. */
export function damaged(field: string, problem: string, cause?: unknown): PawlError {
  const message = `This is no sound export of a run: ${field} ${problem}. Export the run again with \`pawl export RUN\`, or restore the file.`;
  return new PawlError("invalid_argument", message, { fields: { field }, cause });
}

function newer(version: number): PawlError {
  const message = `formatVersion is ${version}; this version of Pawl reads exports up to ${EXPORT_VERSION}. Upgrade Pawl, or export the run again with this version.`;
  return new PawlError("invalid_argument", message, { fields: { field: "formatVersion", version } });
}
