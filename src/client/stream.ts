// Reading streams
// Follows a run's journal and, beside it, what its steps emit. The journal says which attempts count; the chunks are only ever read for those.
//
//   RS1. The journal is read first, the chunks after it: whatever has an outcome there has all its chunks stored by then (SM2).
//   RS2. Chunks are handed out in the order of their numbers and without a gap. Where one is missing, the end of the step says so.
//   RS3. The cursor of an event is where the reader is behind it: who goes on from there gets all that follows, and nothing twice.
import { ENDS, type StoredEntry } from "../core/journal.ts";
import { LIMITS } from "../core/limits.ts";
import type { RunRow } from "../core/store.ts";
import {
  type ChainedEntry,
  isLookedInto,
  type ReadStream,
  type StreamChange,
  StreamFold,
} from "../core/stream-fold.ts";
import { chunkAddress, type StreamChunk } from "../core/streams.ts";
import { isTerminal } from "../core/transition.ts";
import { openEntry, openKey, openValue } from "../core/values.ts";
import { patiently } from "./patiently.ts";
import type { RunSource } from "./run.ts";
import { cursorAhead, cursorText, readCursor, type StreamCursor } from "./stream-cursor.ts";

export interface StreamOptions {
  /** Only what this step emits. */
  readonly key?: string;
  /** Go on behind the event that had this cursor. Without one, each step begins with what its newest attempt has emitted. */
  readonly after?: string;
}

/** What a reader of `run.stream()` gets. */
export type StreamEvent = StreamChunkEvent | StreamRetractEvent | StreamEndEvent;

interface StreamPlace {
  /** The step. */
  readonly key: string;
  /** From 1. */
  readonly attempt: number;
  /** Where the reader is now: give it as `after` to go on behind this event. */
  readonly cursor: string;
}

/** The step has emitted this. `n` is 0 where what it emits begins. */
export interface StreamChunkEvent extends StreamPlace {
  readonly type: "chunk";
  readonly n: number;
  readonly value: unknown;
}

/** All that was read of this attempt is void: it has failed or was given up, and another one may begin. */
export interface StreamRetractEvent extends StreamPlace {
  readonly type: "retract";
}

/** The step's outcome is recorded. */
export interface StreamEndEvent extends StreamPlace {
  readonly type: "end";
  readonly ok: boolean;
  /** False: not all that led to the outcome can be read here, or anywhere. The step's result is in the journal. */
  readonly isComplete: boolean;
}

/** The streams of a run, until it ends; `row` reads the run's row. */
export function streamOf(
  source: RunSource,
  run: string,
  row: () => Promise<RunRow>,
  { key, after }: StreamOptions = {},
): AsyncIterable<StreamEvent> {
  const only = key ?? null;
  const cursor = after === undefined ? null : readCursor(after, run, only);
  return new StreamReader(source, run, row, only).events(cursor);
}

interface Ahead {
  readonly chunks: readonly StreamChunk[];
  /** There is no more of it. */
  readonly isAll: boolean;
}

class StreamReader {
  readonly #source: RunSource;
  readonly #run: string;
  readonly #row: () => Promise<RunRow>;
  readonly #key: string | null;
  readonly #fold = new StreamFold();
  /** The next entry. */
  #from = 0;
  #hasEnded = false;
  /** Entries before it were inherited from another run, which has their chunks. */
  #ownFrom = 0;
  /** The streams that succeed in the page that is being read, and what was read of them ahead. */
  #ending: readonly ReadStream[] = [];
  readonly #ahead = new Map<string, Ahead>();

  constructor(source: RunSource, run: string, row: () => Promise<RunRow>, key: string | null) {
    this.#source = source;
    this.#run = run;
    this.#row = row;
    this.#key = key;
  }

  async *events(after: StreamCursor | null): AsyncGenerator<StreamEvent, void, void> {
    const { store, changes } = this.#source;
    const listener = changes.listen(this.#run);
    try {
      await this.#begin(after);
      for (;;) {
        this.#source.assertOpen();
        const row = await patiently(this.#row());
        const page = await patiently(store.journal(this.#run, { from: this.#from, limit: LIMITS.streamPage }));
        if (page !== null) yield* this.#readPage(page);
        if (page?.length === LIMITS.streamPage) continue;
        yield* this.#readOpen();
        // The end was read; or it had been before, and then row and journal together say that this was all.
        if (this.#hasEnded || (row !== null && isTerminal(row.state) && this.#from >= row.head)) return;
        await listener.next({ polls: true });
      }
    } finally {
      listener.stop();
    }
  }

  // Where to begin

  async #begin(after: StreamCursor | null): Promise<void> {
    const { origin } = await this.#insistently(this.#row);
    if (origin !== null) this.#ownFrom = await this.#findOwn();
    if (after === null || after.from === 0) return;
    await this.#goTo(after);
  }

  /** The first entry of a fork that is its own. */
  async #findOwn(): Promise<number> {
    for (let from = 0, own = 0; ; ) {
      const page = await this.#page(from);
      for (const { type, seq } of page) if (type === "run.forked") own = seq + 1;
      from += page.length;
      if (page.length < LIMITS.streamPage) return own;
    }
  }

  /** Takes in what the reader had taken in: not more than is needed to know what was under way. */
  async #goTo({ from, since, next }: StreamCursor): Promise<void> {
    for (this.#from = since; this.#from < from; ) {
      const page = (await this.#page(this.#from)).filter(({ seq }) => seq < from);
      const last = page.at(-1);
      if (last === undefined) throw cursorAhead(this.#run);
      for (const stored of page) this.#fold.apply(this.#fold.look(this.#open(stored)));
      this.#from = last.seq + 1;
    }
    const [last] = await this.#insistently(() => this.#source.store.journal(this.#run, { from: from - 1, limit: 1 }));
    if (last?.seq !== from - 1) throw cursorAhead(this.#run);
    const streams = new Map(this.#fold.open.map((stream) => [stream.seq, stream]));
    for (const [seq, n] of next) {
      const stream = streams.get(seq);
      if (stream === undefined) throw cursorAhead(this.#run);
      stream.next = n;
    }
  }

  #page(from: number): Promise<StoredEntry[]> {
    return this.#insistently(() => this.#source.store.journal(this.#run, { from, limit: LIMITS.streamPage }));
  }

  /** Asks until the store answers. */
  async #insistently<T>(ask: () => Promise<T>): Promise<T> {
    const listener = this.#source.changes.listen(this.#run);
    try {
      for (;;) {
        this.#source.assertOpen();
        const answer = await patiently(ask());
        if (answer !== null) return answer;
        await listener.next({ polls: true });
      }
    } finally {
      listener.stop();
    }
  }

  #open(stored: StoredEntry): ChainedEntry {
    const { hash } = stored;
    if (isLookedInto(stored.type)) return { ...openEntry(this.#source.codec, this.#run, stored), hash };
    const { seq, at, type } = stored;
    return { seq, at, type, key: openKey(this.#source.codec, stored), payload: null, hash };
  }

  // Going on

  async *#readPage(page: readonly StoredEntry[]): AsyncGenerator<StreamEvent, void, void> {
    const entries = page.map((stored) => this.#open(stored));
    this.#ending = this.#endingIn(entries);
    for (const entry of entries) {
      const change = this.#fold.look(entry);
      if (change !== null) yield* this.#before(change);
      this.#fold.apply(change);
      this.#from = entry.seq + 1;
      this.#hasEnded = ENDS.some((type) => type === entry.type);
      if (change?.kind === "ends" && this.#isRead(change.stream)) yield this.#end(change, entry);
    }
    this.#ahead.clear();
  }

  /** What is to be said before the entry is taken in. */
  async *#before(change: StreamChange): AsyncGenerator<StreamEvent, void, void> {
    if (change.kind === "ends" && change.ok) yield* this.#readRest(change.stream);
    else if (change.kind === "ends") yield* this.#retract([change.stream]);
    else if (change.kind === "voids") yield* this.#retract(change.streams);
    else if (change.replaces !== null) yield* this.#retract([change.replaces]);
  }

  *#retract(streams: readonly ReadStream[]): Generator<StreamEvent, void, void> {
    for (const stream of streams) {
      const wasSeen = stream.next > 0;
      stream.next = 0;
      if (wasSeen) yield { type: "retract", ...this.#place(stream) };
    }
  }

  #end({ stream, ok }: Extract<StreamChange, { kind: "ends" }>, { seq }: ChainedEntry): StreamEvent {
    const isOwn = seq >= this.#ownFrom && !stream.isVoid;
    return { type: "end", ...this.#place(stream), ok, isComplete: !ok || (isOwn && stream.isClosed) };
  }

  /** Hands out what is left of a stream whose step has succeeded. */
  async *#readRest(stream: ReadStream): AsyncGenerator<StreamEvent, void, void> {
    if (stream.isVoid || !this.#isRead(stream)) return;
    for (let isFirst = true; ; isFirst = false) {
      if (!this.#ahead.has(stream.start)) await this.#readAhead(stream);
      const { chunks, isAll } = this.#ahead.get(stream.start) as Ahead;
      this.#ahead.delete(stream.start);
      // Nothing was ever emitted.
      if (isFirst && chunks.length === 0 && stream.next === 0) stream.isClosed = true;
      const before = stream.next;
      for (const chunk of chunks) yield* this.#handOut(stream, chunk);
      if (isAll || stream.isClosed || stream.next === before) return;
    }
  }

  /** Hands out what is there of attempts that are under way. */
  async *#readOpen(): AsyncGenerator<StreamEvent, void, void> {
    for (;;) {
      const streams = this.#fold.open.filter((stream) => this.#isRead(stream) && !stream.isVoid && !stream.isClosed);
      if (streams.length === 0) return;
      const chunks = await patiently(this.#ask(streams));
      if (chunks === null) return;
      const byStart = new Map(streams.map((stream) => [stream.start, stream]));
      let count = 0;
      for (const chunk of chunks) {
        const stream = byStart.get(chunk.start) as ReadStream;
        const before = stream.next;
        yield* this.#handOut(stream, chunk);
        if (stream.next > before || stream.isClosed) count++;
      }
      if (chunks.length < LIMITS.streamPage || count === 0) return;
    }
  }

  /** The next chunk, or the mark behind the last one. What comes too early is left: one before it is missing (RS2). */
  *#handOut(stream: ReadStream, { n, data }: StreamChunk): Generator<StreamEvent, void, void> {
    if (n !== stream.next) return;
    if (data === null) {
      stream.isClosed = true;
      return;
    }
    const value = openValue(this.#source.codec, data, chunkAddress(this.#run, stream.start, n));
    stream.next = n + 1;
    yield { type: "chunk", ...this.#place(stream), n, value };
  }

  /** The streams that succeed in these entries: what they have is read together, or a run of many steps would have a question for each. */
  #endingIn(entries: readonly ChainedEntry[]): ReadStream[] {
    const fold = new StreamFold();
    for (const stream of this.#fold.open) fold.apply({ kind: "begins", stream, replaces: null });
    return entries.flatMap((entry) => {
      const change = fold.look(entry);
      // What is void is found out when it is its turn.
      if (change?.kind !== "voids") fold.apply(change);
      return change?.kind === "ends" && change.ok && this.#isRead(change.stream) ? [change.stream] : [];
    });
  }

  /** Reads what is left of this stream, and of those that follow it in its page, as much as there is room for. */
  async #readAhead(stream: ReadStream): Promise<void> {
    const behind = this.#ending.slice(this.#ending.findIndex(({ start }) => start === stream.start) + 1);
    const streams = [stream, ...behind];
    const found = await this.#insistently(() => this.#ask(streams));
    const last = found.length < LIMITS.streamPage ? null : found.at(-1);
    for (const { start } of streams) {
      const isAll = start !== last?.start;
      const chunks = found.filter((chunk) => chunk.start === start);
      if (isAll || start === stream.start) this.#ahead.set(start, { chunks, isAll });
      if (!isAll) return;
    }
  }

  #ask(streams: readonly ReadStream[]): Promise<StreamChunk[]> {
    const of = streams.map(({ start, next }) => ({ start, n: next }));
    return this.#source.store.chunks(this.#run, { of, limit: LIMITS.streamPage });
  }

  #isRead({ key }: ReadStream): boolean {
    return this.#key === null || this.#key === key;
  }

  #place({ key, attempt }: ReadStream): StreamPlace {
    const { open } = this.#fold;
    const next = open.filter((stream) => stream.next > 0).map(({ seq, next: n }) => [seq, n] as const);
    const since = open[0]?.seq ?? this.#from;
    const cursor = cursorText({ run: this.#run, key: this.#key, from: this.#from, since, next });
    return { key, attempt, cursor };
  }
}
