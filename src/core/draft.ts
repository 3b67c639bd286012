// The open commit of a run
// What a pass has written and not yet handed to the committer. Entries get their position, time and checksum when they join,
// so that a batch whose answer was lost can be offered again byte for byte (P17).
import { decode, encode } from "../base/codec.ts";
import type { Codec } from "../base/envelope.ts";
import { checksum } from "./checksum.ts";
import type { Host } from "./host.ts";
import type { EntryType, StoredEntry } from "./journal.ts";
import { LIMITS } from "./limits.ts";
import type { Redactor } from "./redactor.ts";
import type {
  CounterChange,
  Message,
  NewChild,
  NewKey,
  NewRun,
  RowPatch,
  RunCommit,
  StateRow,
  WaitChange,
} from "./store.ts";

export interface Chain {
  /** Next position. */
  readonly head: number;
  /** Checksum of the entry before it; the run's id at the start (P35). */
  readonly hash: string;
  /** Time of the entry before it. */
  readonly at: number;
}

/** A step whose attempt begins with an entry. */
interface Begun {
  /** That entry's checksum, once it has joined. */
  start: string;
}

type OpenCommit = { -readonly [Part in keyof RunCommit]: RunCommit[Part] };

// Most batches have a call and an outcome, and nothing else: what is empty is shared, and replaced when it is needed.
const NOTHING: never[] = [];

/** A batch on its way: what the store gets, and what may happen once it is durable. */
export interface Batch {
  readonly commit: RunCommit;
  readonly after: readonly (() => void)[];
  /** The same without giving the run up, for a suspension that was refused because mail came first (P18). */
  readonly withoutSuspension: RunCommit | null;
  /** What remains of it when the end of the run is taken back because a cancel came first (P19). */
  readonly withoutEnd: { readonly entries: number; readonly after: number; readonly commit: OpenCommit | null } | null;
  readonly from: Chain;
  /** A transaction decides on it: it cannot be offered again without the user's SQL, and is taken back (`reopen`). */
  readonly isTransaction?: true;
}

export class Draft {
  readonly #run: string;
  readonly #host: Host;
  readonly #codec: Codec;
  /** What is taken out of all that is written here; the pass or whoever makes the draft sets it. */
  redactor: Redactor | null = null;
  #head: number;
  #hash: string;
  #at: number;
  #from: Chain;
  #entries: StoredEntry[] = NOTHING;
  #after: (() => void)[] = NOTHING;
  /** All but its entries; made when there is more than those. */
  #commit: OpenCommit | null = null;
  #withoutEnd: Batch["withoutEnd"] = null;
  /** What wants to join while a transaction decides on the last batch; `null` while none does. */
  #held: (() => void)[] | null = null;

  constructor(run: string, chain: Chain, host: Host, codec: Codec) {
    this.#run = run;
    this.#head = chain.head;
    this.#hash = chain.hash;
    this.#at = chain.at;
    this.#from = chain;
    this.#host = host;
    this.#codec = codec;
  }

  get chain(): Chain {
    return { head: this.#head, hash: this.#hash, at: this.#at };
  }

  /** Time of the last entry. */
  get at(): number {
    return this.#at;
  }

  /** Where the entries that wait here begin. */
  get from(): Chain {
    return this.#from;
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0 && this.#after.length === 0 && this.#commit?.row === undefined;
  }

  get size(): number {
    return this.#entries.length;
  }

  /** The run itself is among what waits here. */
  get isCreating(): boolean {
    return this.#commit?.create !== undefined;
  }

  /** A transaction decides on the last batch: nothing joins before it has, so that the batch can be taken back. */
  get isHeld(): boolean {
    return this.#held !== null;
  }

  hold(): void {
    this.#held ??= [];
  }

  /** Lets join what was held back, in its order. */
  release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const join of held) join();
  }

  #isHolding(join: () => void): boolean {
    if (this.#held === null) return false;
    this.#held.push(join);
    return true;
  }

  /** Appends an entry with this payload; returns its position. `begins` is what an attempt begins with it: it is told the entry's checksum. */
  append(at: number, type: EntryType, key: string | null, payload: unknown, begins: Begun | null = null): number {
    return this.appendText(at, type, key, payload === null ? null : encodeRecord(payload, type), begins);
  }

  /** Appends an entry whose payload is encoded already. */
  appendText(
    at: number,
    type: EntryType,
    key: string | null,
    text: string | null,
    begins: Begun | null = null,
  ): number {
    const seq = this.#head;
    if (this.#isHolding(() => this.appendText(at, type, key, text, begins))) return seq;
    const time = at > this.#at ? at : this.#at;
    const clean = text === null || this.redactor === null ? text : this.redactor.entry(type, key, text);
    const data = clean === null ? null : this.#codec.seal(clean, { run: this.#run, seq, field: "data" });
    const { names } = this.#codec;
    // The checksum is taken of what is kept: of a name it would be as good as the name.
    const kept = names === undefined || key === null ? key : names.seal(key);
    const entry = { seq, at: time, type, key: kept, data, hash: "" };
    entry.hash = checksum(this.#host, this.#hash, entry);
    // An array that is pushed to makes room for seventeen.
    if (this.#entries.length > 1) this.#entries.push(entry);
    else this.#entries = this.#entries[0] === undefined ? [entry] : [this.#entries[0], entry];
    this.#head = seq + 1;
    this.#hash = entry.hash;
    this.#at = time;
    if (begins !== null) begins.start = entry.hash;
    return seq;
  }

  /** Runs `fn` when everything written so far is durable. */
  onDurable(fn: () => void): void {
    if (this.#isHolding(() => this.onDurable(fn))) return;
    if (this.#after.length === 0) this.#after = [fn];
    else this.#after.push(fn);
  }

  /** What is to happen when everything so far is durable, and that it is. */
  takeCallbacks(): readonly (() => void)[] {
    const after = this.#after;
    this.#after = NOTHING;
    return after;
  }

  create(run: NewRun): void {
    this.#open().create = run;
  }

  row(patch: RowPatch): void {
    if (this.#isHolding(() => this.row(patch))) return;
    const commit = this.#open();
    commit.row = commit.row === undefined ? patch : { ...commit.row, ...patch };
  }

  wait(change: WaitChange): void {
    if (this.#isHolding(() => this.wait(change))) return;
    const commit = this.#open();
    const clean = this.redactor === null ? change : redactedWait(this.redactor, change);
    commit.waits = [...(commit.waits ?? NOTHING), clean];
  }

  state(row: StateRow): void {
    if (this.#isHolding(() => this.state(row))) return;
    const commit = this.#open();
    commit.state = [...(commit.state ?? NOTHING), row];
  }

  child(child: NewChild): void {
    if (this.#isHolding(() => this.child(child))) return;
    const commit = this.#open();
    commit.children = [...(commit.children ?? NOTHING), child];
  }

  send(message: Message): void {
    if (this.#isHolding(() => this.send(message))) return;
    const commit = this.#open();
    commit.messages = [...(commit.messages ?? NOTHING), message];
  }

  consume(id: string): void {
    if (this.#isHolding(() => this.consume(id))) return;
    const commit = this.#open();
    commit.consumes = [...(commit.consumes ?? NOTHING), id];
  }

  key(key: NewKey): void {
    if (this.#isHolding(() => this.key(key))) return;
    const commit = this.#open();
    commit.keys = [...(commit.keys ?? NOTHING), key];
  }

  counter(change: CounterChange): void {
    if (this.#isHolding(() => this.counter(change))) return;
    const commit = this.#open();
    commit.counters = [...(commit.counters ?? NOTHING), change];
  }

  /** What is written holds only as long as nothing more has come by mail; the oldest reading counts. */
  ifWake(wake: number): void {
    if (this.#isHolding(() => this.ifWake(wake))) return;
    this.#open().ifWake ??= wake;
  }

  #open(): OpenCommit {
    this.#commit ??= { run: this.#run, head: this.#from.head, entries: NOTHING };
    return this.#commit;
  }

  /** What follows belongs to the end of the run, which holds only if no cancel came first. */
  beginEnd(): void {
    if (this.#isHolding(() => this.beginEnd())) return;
    const commit = this.#commit;
    this.#withoutEnd = { entries: this.#entries.length, after: this.#after.length, commit };
    if (commit !== null) this.#commit = { ...commit };
    this.#open().ifNotCancelled = true;
  }

  /** Closes the draft into a batch and opens the next one. */
  take(suspension?: { readonly ifWake: number; readonly row: RowPatch }): Batch {
    const plain = this.#close();
    const batch: Batch = {
      commit:
        suspension === undefined
          ? plain
          : { ifWake: suspension.ifWake, ...plain, row: { ...plain.row, ...suspension.row } },
      after: this.#after,
      withoutSuspension: suspension === undefined ? null : plain,
      withoutEnd: this.#withoutEnd,
      from: this.#from,
    };
    this.#entries = NOTHING;
    this.#after = NOTHING;
    this.#commit = null;
    this.#withoutEnd = null;
    this.#from = this.chain;
    return batch;
  }

  /** Closes it with the outcome of a transaction as its last entry. What comes later is held back until that is decided. */
  takeWithOutcome(at: number, key: string, text: string, landed: () => void): Batch {
    const held = this.#held ?? [];
    this.#held = null;
    const commit = this.#commit === null ? null : { ...this.#commit };
    this.#withoutEnd = { entries: this.#entries.length, after: this.#after.length, commit };
    this.appendText(at, "step.completed", key, text);
    this.onDurable(landed);
    const batch: Batch = { ...this.take(), isTransaction: true };
    this.#held = held;
    return batch;
  }

  #close(): RunCommit {
    const commit = this.#open();
    commit.entries = this.#entries;
    const { row } = commit;
    // Where the journal ends is kept whenever the run's row is written anyway (P35).
    if (row !== undefined && row.head !== this.#head) commit.row = { ...row, head: this.#head, headHash: this.#hash };
    return commit;
  }

  /** Puts a refused batch back in front of what has joined since: both go as one. */
  putBack(batch: Batch): void {
    const before = batch.commit;
    const kept = this.#withoutEnd;
    this.#withoutEnd =
      kept === null
        ? batch.withoutEnd
        : {
            entries: before.entries.length + kept.entries,
            after: batch.after.length + kept.after,
            commit: joined(before, kept.commit),
          };
    this.#commit = joined(before, this.#commit);
    this.#entries = [...before.entries, ...this.#entries];
    this.#after = [...batch.after, ...this.#after];
    this.#from = batch.from;
  }

  /** Takes changes of counters out of what waits here. */
  dropCounters(isDropped: (change: CounterChange) => boolean): void {
    for (const commit of [this.#commit, this.#withoutEnd?.commit ?? null]) {
      if (commit?.counters === undefined) continue;
      const left = commit.counters.filter((change) => !isDropped(change));
      if (left.length > 0) commit.counters = left;
      else delete commit.counters;
    }
  }

  /** Takes back a batch, all but its end: that of the run which a cancel has overtaken, or the outcome of a transaction that was rolled back. */
  reopen(batch: Batch): void {
    const kept = batch.withoutEnd;
    if (kept === null) return;
    const entries = batch.commit.entries.slice(0, kept.entries);
    const last = entries.at(-1);
    this.#from = batch.from;
    this.#head = last === undefined ? batch.from.head : last.seq + 1;
    this.#hash = last?.hash ?? batch.from.hash;
    this.#at = last?.at ?? batch.from.at;
    this.#entries = entries;
    this.#after = batch.after.slice(0, kept.after);
    this.#commit = kept.commit;
  }
}

/** What a wait is about says why a run is parked, with whatever its error said. */
function redactedWait(redactor: Redactor, change: WaitChange): WaitChange {
  if (!("open" in change) || change.open.detail === null) return change;
  return { open: { ...change.open, detail: redactor.detail(change.open.detail) } };
}

/** What two commits of a run come to that follow each other, apart from their entries. */
function joined(before: RunCommit, after: OpenCommit | null): OpenCommit {
  if (after === null) return { ...before, entries: NOTHING };
  const list = <T>(a: readonly T[] | undefined, b: readonly T[] | undefined) =>
    a === undefined || b === undefined ? (a ?? b) : [...a, ...b];
  const lists = {
    consumes: list(before.consumes, after.consumes),
    children: list(before.children, after.children),
    messages: list(before.messages, after.messages),
    waits: list(before.waits, after.waits),
    state: list(before.state, after.state),
    keys: list(before.keys, after.keys),
    counters: list(before.counters, after.counters),
  };
  const isThere = ([, part]: [string, unknown]) => part !== undefined;
  return {
    ...before,
    ...after,
    ...Object.fromEntries(Object.entries(lists).filter(isThere)),
    ...(before.ifWake !== undefined && { ifWake: before.ifWake }),
    ...((before.row ?? after.row) !== undefined && { row: { ...before.row, ...after.row } }),
    head: before.head,
    entries: NOTHING,
  };
}

/** The text of a user's value; refuses at the door what cannot be recorded later, wrapped as it may be, naming the path to it. */
export function encodePayload(value: unknown, path: string): string {
  return encode(value, { path, maxBytes: LIMITS.valueBytes, willBeWrapped: true });
}

/** The text of what the engine records, a user's value among it: one that has passed `encodePayload` always fits (B65). */
export function encodeRecord(payload: unknown, path: string): string {
  return encode(payload, { path, maxBytes: LIMITS.valueBytes + LIMITS.envelopeBytes });
}

/** What a reader of the journal will see of it. */
export function decodePayload(text: string): unknown {
  return decode(text);
}
