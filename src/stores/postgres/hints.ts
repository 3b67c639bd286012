// Hints: LISTEN and NOTIFY
// Whoever has changed something that others may wait for says so a moment later, in a statement of its own: inside the commit it would make all
// commits of the database wait for each other. Several are said together. A hint names the runs it is about; everything works with all of them
// lost (I12).
import type { PgClient } from "./driver.ts";
import { Link, type LinkOptions } from "./link.ts";

/** Hints of one process are at least so far apart. */
const GAP_MS = 10;
/** PostgreSQL allows 8,000 bytes. */
const PAYLOAD_BYTES = 7000;
/** How often a quiet connection is asked whether it still lives. */
const PING_MS = 10_000;

// Captured at load: the determinism guard replaces the globals later.
const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis;

type Listener = () => void;

export class Hints {
  readonly #channel: string;
  readonly #sender: () => Link;
  readonly #receiver: Link;
  readonly #listeners = new Set<Listener>();
  #hasNews = false;
  #timer: NodeJS.Timeout | null = null;
  #ping: NodeJS.Timeout | null = null;

  /** `sender` gives the connection that hints go out on; `receiver` says how to open the one that listens. */
  constructor(schema: string, sender: () => Link, receiver: Omit<LinkOptions, "opened" | "lost">) {
    this.#channel = `pawl ${schema}`;
    this.#sender = sender;
    this.#receiver = new Link({ ...receiver, opened: (client) => this.#listenOn(client) });
  }

  /** Something has changed that somebody else may wait for. */
  announce(): void {
    this.#hasNews = true;
    if (this.#timer !== null) return;
    this.#timer = startTimer(() => this.#send(), GAP_MS);
    this.#timer.unref();
  }

  #send(): void {
    this.#timer = null;
    if (!this.#hasNews) return;
    this.#hasNews = false;
    void this.#sender()
      .query("select pg_notify($1, '')", [this.#channel])
      .catch(() => {});
  }

  listen(listener: Listener): () => void {
    const own = () => listener();
    this.#listeners.add(own);
    if (this.#ping === null) this.#keepAlive();
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size === 0) void this.#stopListening();
    };
  }

  async #listenOn(client: PgClient): Promise<void> {
    client.on("notification", () => this.#heard());
    await client.query({ text: `listen ${quoted(this.#channel)}` });
    // Whatever was said before is not repeated.
    this.#heard();
  }

  #heard(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  /** A statement now and then finds a connection whose other end is gone; the next one opens a new one. */
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

  async close(): Promise<void> {
    if (this.#timer !== null) stopTimer(this.#timer);
    this.#timer = null;
    this.#listeners.clear();
    await this.#stopListening();
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
