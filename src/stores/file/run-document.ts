// The document of a run
// First what people read, then what the engine needs to go on with nothing but this file, then the checksum of both. Its journal has one entry a
// line, so that two versions can be compared.

import type { Entry, StoredEntry } from "../../core/journal.ts";
import { stateDocument } from "../../core/state-document.ts";
import type { InboxRow, Message, NewChild, RunRow, StateRow, WaitRow } from "../../core/store.ts";
import { isTerminal } from "../../core/transition.ts";
import { openEntry } from "../../core/values.ts";
import { defaultCodec } from "../default-codec.ts";
import type { MemoryRun, Start } from "../memory/tables.ts";
import { Canonical, canonicalText, checksumOf } from "./canonical.ts";
import { FORMAT } from "./document-shape.ts";
import { readData, type WrittenData, writeData } from "./sealed-data.ts";

/** What a run's document has beside what the tables keep of the run: its part of what belongs to all. */
export interface Share {
  /** Keys that lead to this run. The one with the highest number holds it: a key may have moved. */
  readonly keys: Map<string, HeldKey>;
  /** What this run has added to each counter: their sum over all runs is the counter. */
  readonly counters: Map<string, number>;
  /** Its starts, which count for rates. */
  begun: readonly BegunRun[];
  /** For other runs, and not surely with them yet (P31). */
  outbox: OutboxItem[];
  /** Runs that the outbox in the file names, though it may have been delivered since. */
  mentions: ReadonlySet<string>;
  readonly accepted: readonly Acceptance[];
}

export interface HeldKey {
  readonly space: string;
  readonly key: string;
  readonly digest: string;
  readonly number: number;
}

export interface BegunRun extends Start {
  readonly rate: string;
}

/** A run to be created, or a message to be delivered, as of a time. */
export type OutboxItem = { readonly at: number } & (
  | { readonly child: NewChild; readonly message?: undefined }
  | { readonly message: Message; readonly child?: undefined }
);

/** A person has taken over what somebody had changed in the file. */
export interface Acceptance {
  readonly at: number;
  readonly by: string;
  readonly reason: string;
}

export interface KeptRun {
  readonly run: MemoryRun;
  readonly share: Share;
}

export type Readable = Readonly<Record<string, unknown>>;

export function emptyShare(): Share {
  return { keys: new Map(), counters: new Map(), begun: [], outbox: [], mentions: new Set(), accepted: [] };
}

/** The text of a run's document. */
export function documentText(kept: KeptRun): string {
  return signedText(readableOf(kept.run), engineOf(kept));
}

// Writing

/** A part of the document that stands on one line. */
class Line extends Canonical {
  readonly shown: string;

  constructor(value: unknown) {
    super(canonicalText(value));
    this.shown = JSON.stringify(value);
  }
}

type EngineFields = Readonly<Record<string, Line | readonly Line[]>>;

function signedText(readable: Readable, engine: EngineFields): string {
  const checksum = checksumOf({ ...readable, engine });
  const fields = Object.entries(engine).map(([name, value]) => `    ${JSON.stringify(name)}: ${shownLines(value)}`);
  const head = JSON.stringify(readable, null, 2).slice(0, -2);
  return `${head},\n  "engine": {\n${fields.join(",\n")}\n  },\n  "checksum": "${checksum}"\n}\n`;
}

function shownLines(value: Line | readonly Line[]): string {
  if (value instanceof Line) return value.shown;
  return value.length === 0 ? "[]" : `[\n      ${value.map(({ shown }) => shown).join(",\n      ")}\n    ]`;
}

function engineOf({ run, share }: KeptRun): EngineFields {
  const lines = (values: Iterable<unknown>) => Array.from(values, (value) => new Line(value));
  return {
    format: new Line(FORMAT),
    number: new Line(run.n),
    row: new Line(run.row),
    claimed_head: new Line(run.claimedHead),
    journal: run.journal.map(entryLine),
    inbox: lines(run.inbox.map(({ row, isConsumed }) => ({ ...row, data: writeData(row.data), consumed: isConsumed }))),
    waits: lines([...run.waits.values()].map(({ key, kind, name, due, detail }) => ({ key, kind, name, due, detail }))),
    state: Array.from(run.state.values(), stateLine),
    keys: lines(share.keys.values()),
    counters: new Line(Object.fromEntries(share.counters)),
    holds: new Line(Object.fromEntries(run.holds)),
    begun: lines(share.begun),
    outbox: lines(share.outbox.map(writeItem)),
    accepted: lines(share.accepted),
  };
}

// A journal only grows, and entries and state rows are replaced, never changed: each is put into words once.
const entryLines = new WeakMap<StoredEntry, Line>();

function entryLine(entry: StoredEntry): Line {
  const known = entryLines.get(entry);
  if (known !== undefined) return known;
  const line = new Line(writeEntry(entry));
  entryLines.set(entry, line);
  return line;
}

const stateLines = new WeakMap<StateRow, Line>();

function stateLine(row: StateRow): Line {
  const known = stateLines.get(row);
  if (known !== undefined) return known;
  const line = new Line({ key: row.key, data: writeData(row.data) });
  stateLines.set(row, line);
  return line;
}

function writeEntry({ seq, at, type, key, data, hash }: StoredEntry) {
  return { seq, at, type, key, data: writeData(data), hash };
}

function writeItem({ at, child, message }: OutboxItem) {
  return child === undefined
    ? { at, message: { ...message, data: writeData(message?.data ?? null) } }
    : { at, child: { ...child, entry: writeEntry(child.entry) } };
}

// What people read

const openedEntries = new WeakMap<StoredEntry, Entry>();

/** The fold of the journal; of a run whose values are sealed by a codec of its own, only what is not sealed. */
export function readableOf({ row, journal }: Pick<MemoryRun, "row" | "journal">): Readable {
  try {
    return plainJson(stateDocument(row, row.codec === defaultCodec.id ? journal.map(opened(row.id)) : []));
  } catch {
    // A document that cannot be made from its journal must not keep the journal from being written.
    return bareDocument(row);
  }
}

function bareDocument({ id, workflow, version, createdAt, endedAt, state }: RunRow): Readable {
  const time = (ms: number) => new Date(ms).toISOString();
  return {
    workflow_id: id,
    workflow,
    workflow_version: version,
    started_at: time(createdAt),
    updated_at: time(endedAt ?? createdAt),
    status: !isTerminal(state) ? "in_progress" : state === "succeeded" ? "done" : "failed",
    phase: null,
    phases: {},
  };
}

function opened(run: string): (stored: StoredEntry) => Entry {
  return (stored) => {
    const known = openedEntries.get(stored) ?? openEntry(defaultCodec, run, stored);
    openedEntries.set(stored, known);
    return known;
  };
}

function plainJson(document: object): Readable {
  const text = JSON.stringify(document, (_key, value) => (typeof value === "bigint" ? String(value) : value));
  const { engine: _engine, checksum: _checksum, ...readable } = JSON.parse(text) as Record<string, unknown>;
  return readable;
}

// Reading

interface WrittenEntry extends Omit<StoredEntry, "data"> {
  readonly data: WrittenData;
}

interface WrittenEngine {
  readonly number: number;
  readonly row: RunRow;
  readonly claimed_head: number;
  readonly journal: readonly WrittenEntry[];
  readonly inbox: readonly (Omit<InboxRow, "data"> & { readonly data: WrittenData; readonly consumed: boolean })[];
  readonly waits: readonly Omit<WaitRow, "run" | "workflow">[];
  readonly state: readonly { readonly key: string; readonly data: WrittenData }[];
  readonly keys: readonly HeldKey[];
  readonly counters: Readonly<Record<string, number>>;
  readonly holds: Readonly<Record<string, number>>;
  readonly begun: readonly BegunRun[];
  readonly outbox: readonly WrittenItem[];
  readonly accepted: readonly Acceptance[];
}

interface WrittenItem {
  readonly at: number;
  readonly child?: Omit<NewChild, "entry"> & { readonly entry: WrittenEntry };
  readonly message?: Omit<Message, "data"> & { readonly data: WrittenData };
}

/** The run of a document whose shape was checked. */
export function runOf(document: Readable): KeptRun {
  const engine = document["engine"] as WrittenEngine;
  const { id, workflow } = engine.row;
  const journal = engine.journal.map(readEntry);
  const outbox = engine.outbox.map(readItem);
  const state = engine.state.map(
    ({ key, data }): StateRow => Object.freeze({ key, data: readData<string | Uint8Array>(data) }),
  );
  const waits = engine.waits.map((wait): WaitRow => Object.freeze({ run: id, workflow, ...wait }));
  return {
    run: {
      n: engine.number,
      row: frozenRow(engine.row),
      journal,
      inbox: engine.inbox.map(({ consumed, data, ...row }) => ({
        row: Object.freeze({ ...row, data: readData(data) }),
        isConsumed: consumed,
      })),
      waits: new Map(waits.map((wait) => [wait.key, wait])),
      state: new Map(state.map((row) => [row.key, row])),
      holds: new Map(Object.entries(engine.holds)),
      claimedHead: engine.claimed_head,
      isCancelling: journal.some(({ type }) => type === "run.cancelling"),
    },
    share: {
      keys: new Map(engine.keys.map((key) => [keyName(key), key])),
      counters: new Map(Object.entries(engine.counters)),
      begun: engine.begun,
      outbox,
      mentions: new Set(outbox.map(receiverOf)),
      accepted: engine.accepted,
    },
  };
}

export function keyName({ space, key }: Pick<HeldKey, "space" | "key">): string {
  return JSON.stringify([space, key]);
}

export function receiverOf({ child, message }: OutboxItem): string {
  return child === undefined ? (message as Message).to : child.run;
}

function frozenRow(row: RunRow): RunRow {
  const parent = row.parent === null ? null : Object.freeze(row.parent);
  return Object.freeze({ ...row, parent, tags: Object.freeze(row.tags) });
}

function readEntry(written: WrittenEntry): StoredEntry {
  const { seq, at, type, key, data, hash } = written;
  return Object.freeze({ seq, at, type, key, data: readData(data), hash });
}

function readItem({ at, child, message }: WrittenItem): OutboxItem {
  if (child !== undefined) return { at, child: { ...child, entry: readEntry(child.entry) } };
  if (message === undefined) throw new TypeError("An item of an outbox has a child or a message.");
  return { at, message: { ...message, data: readData(message.data) } };
}
