// The writer of streams
// Stores what the attempts of this process emit: everything that is there when a write begins goes into it, whatever the number of runs.
//
//   SW1. One write is under way at a time, so the chunks of an attempt arrive in their order (SM2).
//   SW2. It begins a moment after the first chunk, and at once if an outcome waits for it or much has gathered.
//   SW3. A store that is away is tried until it is back, as for commits. To write chunks again changes nothing, so a lost answer is no problem.
//   SW4. Chunks that the store refuses for good take only their own stream along. Their step goes on: streams are beside it.
import { hasCode, messageOf } from "../base/errors.ts";
import type { Log } from "../core/context.ts";
import type { Host } from "../core/host.ts";
import { LIMITS } from "../core/limits.ts";
import type { Store } from "../core/store.ts";
import type { AttemptStream, StreamChunk, StreamSink } from "../core/streams.ts";

export interface StreamWriterEvents {
  /** Resolves when the store may be asked again. */
  unavailable(error: unknown, failures: number): Promise<void>;
  /** Something of this run is stored. */
  stored(run: string): void;
}

/** What one stream has in a write. */
interface Part {
  readonly stream: AttemptStream;
  readonly chunks: readonly StreamChunk[];
}

export class StreamWriter implements StreamSink {
  readonly #store: Store;
  readonly #host: Host;
  readonly #log: Log;
  readonly #events: StreamWriterEvents;
  readonly #dirty = new Set<AttemptStream>();
  #bytes = 0;
  #forgetTimer: (() => void) | null = null;
  #isWriting = false;
  /** The call to the store that is under way. */
  #call: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(store: Store, { host, log }: { readonly host: Host; readonly log: Log }, events: StreamWriterEvents) {
    this.#store = store;
    this.#host = host;
    this.#log = log;
    this.#events = events;
  }

  dirty(stream: AttemptStream, bytes: number): void {
    if (this.#isStopped) return;
    this.#dirty.add(stream);
    this.#bytes += bytes;
    if (stream.isClosing || this.#bytes >= LIMITS.streamBatchBytes) this.#writeSoon();
    else this.#forgetTimer ??= this.#store.leaseClock.after(LIMITS.streamEveryMs, () => this.#writeSoon());
  }

  forget(stream: AttemptStream): void {
    this.#dirty.delete(stream);
  }

  /** Writes nothing any more; resolves when the store is left alone. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#dirty.clear();
    this.#forgetTimer?.();
    await this.#call.catch(() => {});
  }

  /** What ends in the same moment shares a write. */
  #writeSoon(): void {
    this.#forgetTimer?.();
    this.#forgetTimer = null;
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#host.immediate(() => void this.#writeAll());
  }

  async #writeAll(): Promise<void> {
    for (let failures = 0; ; ) {
      const parts = this.#take();
      const error = parts.length === 0 ? null : await this.#write(parts);
      if (hasCode(error, "closed")) this.#dirty.clear();
      if (error === null || this.#dirty.size === 0) break;
      if (isPassing(error)) await this.#events.unavailable(error, ++failures);
      else await this.#writeApart(parts);
    }
    this.#isWriting = false;
    for (const stream of this.#dirty) this.dirty(stream, 0);
  }

  #take(): Part[] {
    const parts: Part[] = [];
    let room: number = LIMITS.streamBatchChunks;
    for (const stream of this.#dirty) {
      const chunks = stream.offer(room);
      if (chunks.length > 0) parts.push({ stream, chunks });
      room -= chunks.length;
      if (room === 0) break;
    }
    return parts;
  }

  /** What the store has against it; `null` if it is stored. */
  async #write(parts: readonly Part[]): Promise<unknown> {
    try {
      this.#call = this.#store.emit(parts.flatMap(({ chunks }) => chunks));
      await this.#call;
    } catch (error) {
      return error;
    }
    for (const { stream, chunks } of parts) if (!stream.landed(chunks.length)) this.#dirty.delete(stream);
    this.#bytes = 0;
    for (const { queuedBytes } of this.#dirty) this.#bytes += queuedBytes;
    for (const run of new Set(parts.map(({ stream }) => stream.run))) this.#events.stored(run);
    return null;
  }

  /** Finds out whose chunks they are that the store does not take (SW4). */
  async #writeApart(parts: readonly Part[]): Promise<void> {
    for (const part of parts) {
      const error = await this.#write([part]);
      if (isPassing(error)) return;
      if (error !== null) this.#breakOff(part, error);
    }
  }

  #breakOff({ stream, chunks }: Part, error: unknown): void {
    this.#log.error(
      `What a step of run ${stream.run} emits cannot be stored, and is dropped; the step goes on. ${messageOf(error)}`,
      { run: stream.run },
    );
    const isMark = chunks.length === 1 && chunks[0]?.data === null;
    stream.breakOff();
    // Not even that: nobody waits for it any longer.
    if (isMark) stream.landed(1);
    if (stream.offer(1).length === 0) this.#dirty.delete(stream);
  }
}

/** It may work the next time. */
function isPassing(error: unknown): boolean {
  return hasCode(error, "storage_unavailable") || hasCode(error, "unknown_outcome");
}
