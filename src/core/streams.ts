// Streams
// What a step's function tells while it runs, beside the journal: chunks, numbered from 0, for whoever wants to read along. Nothing in the engine
// depends on them.
//
//   SM1. A chunk belongs to the entry that began its attempt, and goes by that entry's checksum. Whoever has written the entry runs the attempt, so
//        no one else writes such a chunk, and no fence is needed: what a zombie emits belongs to an attempt that others have replaced.
//   SM2. Chunks of an attempt are stored in the order of their numbers, one write at a time; all of them, and a mark that closes them, before its outcome
//        is in line for its turn. So whoever sees the outcome can see all of it.
//   SM3. An attempt that is over writes no more.
import { encode } from "../base/codec.ts";
import type { Codec, FieldAddress } from "../base/envelope.ts";
import { PawlError } from "../base/errors.ts";
import { type StepCall, TransactionCall } from "./call.ts";
import { LIMITS } from "./limits.ts";
import type { Redactor } from "./redactor.ts";

export interface StreamChunk {
  readonly run: string;
  /** Checksum of the entry that began the attempt. */
  readonly start: string;
  readonly n: number;
  /** Sealed. `null` closes the stream: there are as many chunks as its number says. */
  readonly data: string | Uint8Array | null;
}

/** Where somebody is in a stream: the next chunk to be read. */
export interface StreamPosition {
  readonly start: string;
  readonly n: number;
}

/** A store's part in streams. */
export interface StreamKeeper {
  /**
   * Adds chunks. One that is there already stays as it is, and those of a run that is gone are dropped. They are visible when the promise resolves, and
   * survive what an outcome survives that is committed after that; by themselves they may be lost. A rejection leaves open what was added: try again.
   */
  emit(chunks: readonly StreamChunk[]): Promise<void>;
  /** The chunks at and behind these positions, at most `limit`: stream by stream as they are asked for, by their numbers. */
  chunks(run: string, query: ChunkQuery): Promise<StreamChunk[]>;
}

export interface ChunkQuery {
  readonly of: readonly StreamPosition[];
  readonly limit: number;
}

/** What writes the streams of a worker. */
export interface StreamSink {
  /** The stream has so many more bytes to write, or waits to be closed. */
  dirty(stream: AttemptStream, bytes: number): void;
  /** It has nothing to write any more. */
  forget(stream: AttemptStream): void;
}

export interface StreamPorts {
  readonly streams: StreamSink;
  readonly codec: Codec;
}

/** What one attempt emits, on its way to the store. */
export class AttemptStream {
  readonly run: string;
  readonly #call: StepCall;
  readonly #start: string;
  readonly #ports: StreamPorts;
  readonly #redactor: Redactor | null;
  #queue: StreamChunk[] = [];
  #queuedBytes = 0;
  #next = 0;
  #isBroken = false;
  #isOver = false;
  /** Told when the stream is closed and all of it is stored. */
  #stored: (() => void) | null = null;

  constructor(run: string, call: StepCall, ports: StreamPorts, redactor: Redactor | null) {
    if (call instanceof TransactionCall) throw inTransaction(run, call);
    this.run = run;
    this.#call = call;
    this.#start = call.start;
    this.#ports = ports;
    this.#redactor = redactor;
  }

  /** Its outcome waits for it. */
  get isClosing(): boolean {
    return this.#stored !== null;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  emit(value: unknown): void {
    if (this.#isOver) return;
    const { key } = this.#call;
    const n = this.#next;
    const text = encode(value, { path: `chunk ${n} of step "${key}"`, maxBytes: LIMITS.chunkBytes });
    const clean = this.#redactor === null ? text : this.#redactor.value(text);
    const data = this.#ports.codec.seal(clean, chunkAddress(this.run, this.#start, n));
    if (this.#queuedBytes + data.length > LIMITS.streamBacklogBytes) throw tooFast(this.run, key);
    this.#next++;
    if (!this.#isBroken) this.#add(data);
  }

  /** Nothing more is emitted: `stored` is called when everything is stored. */
  close(stored: () => void): void {
    this.#isOver = true;
    this.#stored = stored;
    this.#push(this.#next, null);
    this.#ports.streams.dirty(this, 0);
  }

  /** Its attempt is over in another way: what was not written is not written any more (SM3). */
  abandon(): void {
    this.#isOver = true;
    this.#stored = null;
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#ports.streams.forget(this);
  }

  /** What is to be written next, at most so many chunks. They stay until `landed`. */
  offer(most: number): readonly StreamChunk[] {
    return this.#queue.slice(0, most);
  }

  /** So many of them are stored. True: there are more. */
  landed(count: number): boolean {
    for (const { data } of this.#queue.splice(0, count)) this.#queuedBytes -= data?.length ?? 0;
    if (this.#queue.length > 0) return true;
    const stored = this.#stored;
    this.#stored = null;
    stored?.();
    return false;
  }

  /** The store will never take what it holds: it is dropped. The mark that closes it remains, so that readers learn of it. */
  breakOff(): void {
    this.#isBroken = true;
    this.#queue = this.#queue.filter(({ data }) => data === null);
    this.#queuedBytes = 0;
  }

  #add(data: string | Uint8Array): void {
    this.#push(this.#next - 1, data);
    this.#queuedBytes += data.length;
    this.#ports.streams.dirty(this, data.length);
  }

  #push(n: number, data: StreamChunk["data"]): void {
    this.#queue.push({ run: this.run, start: this.#start, n, data });
  }
}

/** The place of a chunk, for the codec. */
export function chunkAddress(run: string, start: string, n: number): FieldAddress {
  return { run, seq: -1, field: `chunk:${start}:${n}` };
}

/** It may run again without an attempt of its own, and leave no trace of the first time: its chunks could not be told apart. */
function inTransaction(run: string, { key }: StepCall): PawlError {
  const message =
    `emit was called in transaction "${key}" of run ${run}. A transaction may be repeated unseen, so what it emits could not be told apart. ` +
    "Emit in a step before or after it.";
  return new PawlError("invalid_argument", message, { fields: { run, step: key } });
}

function tooFast(run: string, step: string): PawlError {
  const maxBytes = LIMITS.streamBacklogBytes;
  return new PawlError(
    "too_large",
    `Step "${step}" of run ${run} has emitted ${maxBytes} bytes that are not stored yet. Let it await something now and then, so that they can be; if it does, the store is too slow or away.`,
    { fields: { run, step, maxBytes } },
  );
}
