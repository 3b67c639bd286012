// Hints: LISTEN and NOTIFY
// Whoever has changed something that others may wait for says so a moment later, in a statement of its own: inside the commit it would make all
// commits of the database wait for each other. Several are said together. A hint names runs and nothing else of them; everything works with all
// hints lost (I12).
import { systemClock } from "../../base/clock.ts";
import type { Hint } from "../../core/store.ts";
import type { PgClient } from "./driver.ts";
import { Link, type LinkOptions } from "./link.ts";

/** Hints of one process are at least so far apart; the first one after a pause goes at once. */
const GAP_MS = 20;
/** Nobody has to wait for a disk because of a hint. */
const SAY = "select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)";
/** A store that is closed waits for its last hint so long. */
const CLOSE_LIMIT_MS = 1000;
const LISTEN_LIMIT_MS = 10_000;
/** PostgreSQL allows 8,000 bytes. Who has more to say names no runs: any may have changed. */
const PAYLOAD_BYTES = 7000;
/** How often a connection that listens is asked whether it still lives. */
const PING_MS = 10_000;

// Captured at load: the determinism guard replaces the globals later.
const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis;

type Listener = (hint: Hint) => void;

export class Hints {
  readonly channel: string;
  readonly #sender: () => Link;
  readonly #receiver: Link;
  readonly #listeners = new Set<Listener>();
  readonly #changed = new Set<string>();
  #isWork = false;
  #saidAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #ping: NodeJS.Timeout | null = null;

  /** `sender` gives the connection that hints go out on; `receiver` says how to open the one that listens. */
  constructor(schema: string, sender: () => Link, receiver: LinkOptions) {
    this.channel = `pawl ${schema}`;
    this.#sender = sender;
    this.#receiver = new Link({ ...receiver, opened: (client) => this.#listenOn(client) });
  }

  /** There may be something to claim or to read. */
  announceWork(): void {
    this.#isWork = true;
    this.#schedule();
  }

  announceChanged(run: string): void {
    this.#changed.add(run);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#timer !== null) return;
    this.#timer = startTimer(() => void this.#send(), Math.max(0, this.#saidAt + GAP_MS - systemClock.monotonic()));
    this.#timer.unref();
  }

  async #send(): Promise<void> {
    this.#timer = null;
    this.#saidAt = systemClock.monotonic();
    const payload = payloadOf({ isWork: this.#isWork, runs: [...this.#changed] });
    this.#isWork = false;
    this.#changed.clear();
    // A hint that is lost is no loss.
    await this.#sender()
      .query(SAY, [this.channel, payload])
      .catch(() => {});
  }

  listen(listener: Listener): () => void {
    const own: Listener = (hint) => listener(hint);
    this.#listeners.add(own);
    if (this.#ping === null) this.#keepAlive();
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size === 0) void this.#stopListening();
    };
  }

  async #listenOn(client: PgClient): Promise<void> {
    client.on("notification", ({ payload }) => this.#heard(hintOf(payload ?? "")));
    await client.query({ text: `listen ${quoted(this.channel)}`, query_timeout: LISTEN_LIMIT_MS });
    // Whatever was said before is not repeated.
    this.#heard({ isWork: true, runs: null });
  }

  #heard(hint: Hint): void {
    for (const listener of [...this.#listeners]) listener(hint);
  }

  /** A statement now and then finds a connection whose other end is gone; the one after it opens a new one. */
  #keepAlive(): void {
    const beat = () => {
      void this.#receiver.query("select 1").catch(() => {});
      this.#ping = startTimer(beat, PING_MS);
      this.#ping.unref();
    };
    beat();
  }

  async #stopListening(): Promise<void> {
    if (this.#ping !== null) stopTimer(this.#ping);
    this.#ping = null;
    await this.#receiver.close();
  }

  /** Whoever goes has left runs to others: they need not wait for their next poll. */
  async #sayTheRest(): Promise<void> {
    if (this.#timer === null) return;
    stopTimer(this.#timer);
    this.#timer = null;
    if (!this.#sender().isOpen) return;
    let limit: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      limit = startTimer(resolve, CLOSE_LIMIT_MS);
    });
    await Promise.race([this.#send(), late]);
    stopTimer(limit);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    await this.#sayTheRest();
    await this.#stopListening();
  }
}

function payloadOf({ isWork, runs }: Hint): string {
  const payload = JSON.stringify({ isWork, runs });
  return Buffer.byteLength(payload) <= PAYLOAD_BYTES ? payload : JSON.stringify({ isWork, runs: null });
}

/** Anybody may write to the channel: what cannot be read says that anything may have changed. */
function hintOf(payload: string): Hint {
  try {
    const { isWork, runs } = JSON.parse(payload) as Partial<Hint>;
    if (Array.isArray(runs) && runs.every((run) => typeof run === "string")) return { isWork: isWork === true, runs };
  } catch {}
  return { isWork: true, runs: null };
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
