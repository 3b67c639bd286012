// A commit as the arguments of one call
// Entries travel as columns, new runs and plain ends as lists, everything else as one document per part; values of the codec go beside these,
// as they are. Which way a part goes is decided here, by what it has and what is known of its run.

import { counterKey } from "../../core/counters.ts";
import type { StoredEntry } from "../../core/journal.ts";
import type { CounterChange, NewChild, NewRun, RowPatch, RunCommit } from "../../core/store.ts";
import type { OwnedRun, OwnedRuns } from "../owned-runs.ts";
import { versionLine } from "../version-line.ts";
import { numbersText, textsText } from "./array-text.ts";
import type { PgValue } from "./driver.ts";

/** How a part travels: as entries alone, in the list of new runs, in that of ends, or as a document of its own. */
type Way = "append" | "create" | "end" | "document";
type Data = string | Uint8Array | null;

export interface StatementContext {
  readonly worker: string | null;
  readonly lane: number;
  /** Store time, where a test gives it. */
  readonly now: number | null;
  readonly owned: OwnedRuns;
}

/** Columns of values, each text or bytes. */
class Values {
  readonly texts: (string | null)[] = [];
  readonly bytes: (Uint8Array | null)[] = [];

  /** Returns its position, counted from one as PostgreSQL does. */
  add(data: Data): number {
    const isText = typeof data === "string";
    this.texts.push(isText ? data : null);
    this.bytes.push(isText ? null : data);
    return this.texts.length;
  }

  /** A column without any bytes goes as one that is absent: most are. */
  get bytesOrNone(): PgValue {
    return this.bytes.some((one) => one !== null) ? this.bytes : null;
  }
}

export class CommitStatement {
  readonly #context: StatementContext;
  readonly #numbers: (number | null)[] = [];
  readonly #part: number[] = [];
  readonly #seq: number[] = [];
  readonly #at: number[] = [];
  readonly #type: string[] = [];
  readonly #key: (string | null)[] = [];
  readonly #data = new Values();
  readonly #hash: string[] = [];
  readonly #creates: object[] = [];
  readonly #ends: ReturnType<typeof endJson>[] = [];
  readonly #parts: object[] = [];
  readonly #locks = new Set<string>();
  readonly #counters = new Set<string>();
  readonly #values = new Values();

  /** `areOrdered`: parts of this commit concern each other, so that all of them are done one after the other. */
  constructor(parts: readonly RunCommit[], areOrdered: boolean, context: StatementContext) {
    this.#context = context;
    const ways = parts.map((part) => (areOrdered ? "document" : this.#wayOf(part)));
    // Runs get their numbers in the order of the commit.
    const isMixed = parts.some((part, i) => ways[i] === "document" && (part.create ?? part.children) !== undefined);
    for (const [i, part] of parts.entries()) {
      const way = ways[i] as Way;
      this.#add(part, isMixed && way === "create" ? "document" : way);
    }
  }

  #wayOf(part: RunCommit): Way {
    if (part.create !== undefined) return isPlainCreation(part) ? "create" : "document";
    const known = this.#knownOf(part);
    if (known === null) return "document";
    if (isPlainAppend(part)) return "append";
    return known.isBare && isPlainEnd(part) ? "end" : "document";
  }

  #knownOf(part: RunCommit): OwnedRun | null {
    return this.#context.owned.find(part.run, this.#context.worker, part.head);
  }

  #add(part: RunCommit, way: Way): void {
    const n = way === "append" || way === "end" ? (this.#knownOf(part)?.n ?? null) : null;
    const index = this.#numbers.push(n);
    for (const entry of part.entries) this.#addEntry(index, entry);
    if (way === "document") this.#addDocument(index, part);
    else if (way === "create") this.#creates.push(newRunJson(part.run, part.create as NewRun, part.entries, index));
    else if (way === "end") this.#ends.push(endJson(index, n as number, part.row as RowPatch));
  }

  #addEntry(part: number, entry: StoredEntry): void {
    this.#part.push(part);
    this.#seq.push(entry.seq);
    this.#at.push(entry.at);
    this.#type.push(entry.type);
    this.#key.push(entry.key);
    this.#data.add(entry.data);
    this.#hash.push(entry.hash);
  }

  #addDocument(index: number, part: RunCommit): void {
    const {
      run,
      head,
      create,
      row,
      ifWake,
      ifNotCancelled,
      consumes,
      children,
      messages,
      waits,
      state,
      keys,
      counters,
    } = part;
    this.#locks.add(run);
    for (const message of messages ?? []) this.#locks.add(message.to);
    this.#parts.push({
      part: index,
      run,
      head,
      ...(create !== undefined && { create: newRunJson(run, create, part.entries) }),
      ...(row !== undefined && { row: rowJson(row) }),
      ...(part.entries.some(({ type }) => type === "run.cancelling") && { cancelling: true }),
      ...(ifWake !== undefined && { ifWake }),
      ...(ifNotCancelled === true && { ifNotCancelled }),
      ...(isAny(consumes) && { consumes }),
      ...(isAny(children) && { children: children.map((child) => this.#childJson(child)) }),
      ...(isAny(messages) && { messages: messages.map(({ data, ...rest }) => this.#withValue(rest, data)) }),
      ...(isAny(waits) && { waits }),
      ...(isAny(state) && { state: state.map(({ data, ...rest }) => this.#withValue(rest, data)) }),
      ...(isAny(keys) && { keys }),
      ...(isAny(counters) && { counters: counters.map((change) => this.#counterJson(change)) }),
    });
  }

  #counterJson(change: CounterChange): object {
    const stored = counterKey(change);
    this.#counters.add(stored);
    const { maxFrom: key, ...rest } = change;
    if (key === undefined) return { ...rest, stored };
    return { ...rest, stored, maxFrom: counterKey({ ...change, key }) };
  }

  #childJson({ run, create, entry }: NewChild): object {
    const { at, type, key, data, hash } = entry;
    return { create: newRunJson(run, create, [entry]), entry: this.#withValue({ at, type, key, hash }, data) };
  }

  /** The first document names the counters of all, so that they are locked in one order (K2). */
  #withLocks(): object[] {
    const [first, ...others] = this.#parts;
    const locks = [...this.#counters].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    return locks.length < 2 ? this.#parts : [{ ...first, locks }, ...others];
  }

  #withValue(rest: object, data: Data): object {
    return { ...rest, value: this.#values.add(data) };
  }

  /** The arguments of `commit_1`. */
  arguments(): PgValue[] {
    const { worker, lane, now } = this.#context;
    return [
      worker,
      lane,
      now,
      numbersText(this.#numbers),
      numbersText(this.#part),
      numbersText(this.#seq),
      numbersText(this.#at),
      textsText(this.#type),
      textsText(this.#key),
      textsText(this.#data.texts),
      this.#data.bytesOrNone,
      textsText(this.#hash),
      listJson(this.#creates),
      listJson(this.#ends.toSorted((a, b) => a.n - b.n)),
      listJson(this.#counters.size === 0 ? this.#parts : this.#withLocks()),
      this.#locks.size > 0 && this.#locks.size + this.#ends.length > 1 ? textsText([...this.#locks]) : null,
      textsText(this.#values.texts),
      this.#values.bytesOrNone,
    ];
  }
}

function isAny<T>(list: readonly T[] | undefined): list is readonly T[] {
  return list !== undefined && list.length > 0;
}

function listJson(list: readonly object[]): string | null {
  return list.length === 0 ? null : JSON.stringify(list);
}

/** Nothing but what concerns the run itself. */
function isQuiet(part: RunCommit): boolean {
  if (part.ifWake !== undefined || part.consumes !== undefined || part.waits !== undefined) return false;
  if (part.messages !== undefined || part.state !== undefined || part.children !== undefined) return false;
  return part.keys === undefined && part.counters === undefined;
}

function isPlainAppend(part: RunCommit): boolean {
  const isConditional = part.ifNotCancelled === true || part.row !== undefined || part.entries.length === 0;
  return !isConditional && isQuiet(part) && !part.entries.some(({ type }) => type === "run.cancelling");
}

function isPlainCreation(part: RunCommit): boolean {
  return isQuiet(part) && part.row === undefined && part.ifNotCancelled === undefined;
}

/** An end that says nothing to anybody: most runs have one. */
function isPlainEnd(part: RunCommit): boolean {
  const { row } = part;
  if (row?.ended !== true || !isQuiet(part) || part.entries.length === 0) return false;
  if ([row.version, row.progress, row.cost, row.deadline].some((value) => value !== undefined)) return false;
  const { state, head, headHash, claims, endedAt, stopReason } = row;
  return [state, head, headHash, claims, endedAt, stopReason].every((value) => value !== undefined);
}

function endJson(part: number, n: number, { state, head, headHash, claims, endedAt, stopReason }: RowPatch) {
  return { part, n, state, head, head_hash: headHash, claims, ended_at: endedAt, stop_reason: stopReason };
}

function rowJson(row: RowPatch): object {
  return row.version === undefined ? row : { ...row, ...versionLine(row.version), version: row.version };
}

function newRunJson(id: string, create: NewRun, entries: readonly StoredEntry[], part?: number): object {
  const { line, patch } = versionLine(create.version);
  const { parent } = create;
  return {
    part,
    id,
    workflow: create.workflow,
    version: create.version,
    line,
    patch,
    trace_id: create.traceId,
    key: create.key,
    tags: create.tags,
    priority: create.priority,
    parent: parent?.run ?? null,
    parent_key: parent?.key ?? null,
    parent_generation: parent?.generation ?? null,
    detached: parent?.detached ?? null,
    origin: create.origin,
    deadline: create.deadline,
    head: entries.length,
    head_hash: entries.at(-1)?.hash ?? "",
    claimed: create.claimed,
    ready_at: create.readyAt,
    codec: create.codec,
    ...(create.needs != null && create.needs),
  };
}
