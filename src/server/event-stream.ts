// Event streams
// Server-sent events, each stream pulled by its reader: what is not read is not fetched either.
//
//   ES1. A stream holds at most one event that its reader has not taken. One that takes nothing for a while is cut off; it goes on from its last id.
//   ES2. A stream that has said "end" is over; one that breaks off without it is to be taken up again.
//   ES3. When the server stops, all streams are closed first.
//   ES4. A stream ends with the session that it was asked for in, within a second; from then on it tells nothing (Q3).
import type { Clock } from "../base/clock.ts";
import { PawlError } from "../base/errors.ts";
import { jsonable } from "../base/jsonable.ts";
import type { Who } from "./credentials.ts";
import { failureOf } from "./failure.ts";
import type { ServerLimits } from "./server-limits.ts";

export interface ServerEvent {
  readonly event: string;
  /** Where the reader is behind it. */
  readonly id?: string;
  readonly data: unknown;
}

type Limits = Pick<ServerLimits, "streams" | "streamsPerTenant" | "streamsPerCredential" | "streamStallMs" | "pingMs">;

/** How often it is looked who has signed out. */
const LOOK_MS = 1000;

interface Reader {
  readonly who: Who;
  /** Drops the connection. */
  cutOff(): void;
  /** Whether the reader may still be told something. */
  isStillIn(): boolean;
}

/** The streams that a server has open. */
export class EventStreams {
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #open = new Map<EventStream, Reader>();
  #isStopped = false;
  #forget: (() => void) | null = null;

  constructor(clock: Clock, limits: Limits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get count(): number {
    return this.#open.size;
  }

  /** The answer that streams these events until they end, the reader goes, or the server stops. */
  answer(reader: Reader, events: (signal: AbortSignal) => AsyncIterable<ServerEvent>): Response {
    this.#assertRoom(reader.who);
    const ends = {
      left: () => this.#open.delete(stream),
      cutOff: () => reader.cutOff(),
      isStillIn: () => reader.isStillIn(),
    };
    const stream: EventStream = new EventStream(events, this.#clock, this.#limits, ends);
    this.#open.set(stream, reader);
    this.#forget ??= this.#clock.after(LOOK_MS, () => this.#look());
    const headers = { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };
    return new Response(stream.readable, { headers });
  }

  stop(): void {
    this.#isStopped = true;
    this.#forget?.();
    for (const stream of [...this.#open.keys()]) stream.close();
  }

  /** ES4. */
  #look(): void {
    for (const [stream, reader] of [...this.#open]) if (!reader.isStillIn()) stream.dismiss();
    this.#forget = this.#open.size === 0 ? null : this.#clock.after(LOOK_MS, () => this.#look());
  }

  #assertRoom({ store, name }: Who): void {
    const { streams, streamsPerTenant, streamsPerCredential } = this.#limits;
    if (this.#isStopped) throw new PawlError("closed", "The server is stopping. Connect again when it is back.");
    const ofStore = [...this.#open.values()].filter(({ who }) => who.store === store);
    const own = ofStore.filter(({ who }) => who.name === name).length;
    if (this.#open.size < streams && ofStore.length < streamsPerTenant && own < streamsPerCredential) return;
    throw new PawlError("rate_limited", "Too many event streams are open. Close some, or come again later.", {
      fields: { retryAfter: 5 },
    });
  }
}

interface StreamEnds extends Omit<Reader, "who"> {
  /** The stream is over. */
  left(): void;
}

type Pulled = IteratorResult<ServerEvent, unknown> | "ping" | "closed";

class EventStream {
  readonly readable: ReadableStream<Uint8Array>;
  readonly #events: AsyncIterator<ServerEvent>;
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #ends: StreamEnds;
  readonly #over = new AbortController();
  readonly #encoder = new TextEncoder();
  /** An event that was asked for and has not come yet: a ping may go ahead of it. */
  #next: Promise<IteratorResult<ServerEvent, unknown>> | null = null;
  #forget: () => void = () => {};
  /** Whether its reader waits for the next event. */
  #isAwaited = false;

  constructor(
    events: (signal: AbortSignal) => AsyncIterable<ServerEvent>,
    clock: Clock,
    limits: Limits,
    ends: StreamEnds,
  ) {
    this.#events = events(this.#over.signal)[Symbol.asyncIterator]();
    this.#clock = clock;
    this.#limits = limits;
    this.#ends = ends;
    this.readable = new ReadableStream(
      { pull: (controller) => this.#pull(controller), cancel: () => this.close() },
      { highWaterMark: 0 },
    );
  }

  close(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#forget();
    this.#ends.left();
    // Whatever it waits for meanwhile: nobody needs it any more.
    this.#next?.catch(() => {});
    void Promise.resolve(this.#events.return?.()).catch(() => {});
  }

  /** Ends it for a reader who may not be told more, also for one who takes nothing. */
  dismiss(): void {
    this.close();
    if (!this.#isAwaited) this.#ends.cutOff();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#forget();
    this.#isAwaited = true;
    const pulled = await this.#pulled().catch((error: unknown) => ({ error }));
    this.#isAwaited = false;
    if (pulled === "closed" || !this.#ends.isStillIn()) return this.#end(controller);
    if (pulled === "ping") return this.#send(controller, { event: "ping", data: {} });
    if ("error" in pulled) {
      this.#send(controller, { event: "error", data: failureOf(pulled.error, "the event stream").body });
      return this.#end(controller);
    }
    if (pulled.done === true) return this.#end(controller);
    this.#send(controller, pulled.value);
  }

  async #pulled(): Promise<Pulled> {
    if (this.#over.signal.aborted) return "closed";
    this.#next ??= this.#events.next();
    const { promise, forget } = this.#interruption();
    const pulled = await Promise.race([this.#next, promise]).finally(forget);
    if (typeof pulled !== "string") this.#next = null;
    return pulled;
  }

  #interruption(): { readonly promise: Promise<"ping" | "closed">; forget(): void } {
    const { signal } = this.#over;
    let forget = () => {};
    const promise = new Promise<"ping" | "closed">((resolve) => {
      const stop = this.#clock.after(this.#limits.pingMs, () => resolve("ping"));
      const closed = () => resolve("closed");
      signal.addEventListener("abort", closed);
      forget = () => {
        stop();
        signal.removeEventListener("abort", closed);
      };
    });
    return { promise, forget };
  }

  #send(controller: ReadableStreamDefaultController<Uint8Array>, event: ServerEvent): void {
    if (this.#over.signal.aborted) return;
    controller.enqueue(this.#encoder.encode(textOf(event)));
    this.#forget = this.#clock.after(this.#limits.streamStallMs, () => {
      this.close();
      // To end it in peace would wait for a reader that does not read.
      this.#ends.cutOff();
    });
  }

  #end(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.close();
    try {
      controller.close();
    } catch {
      // Its reader has gone first.
    }
  }
}

/** An id and JSON have no line breaks. */
function textOf({ event, id, data }: ServerEvent): string {
  return `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(jsonable(data) ?? null)}\n\n`;
}
