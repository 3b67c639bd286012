// A link: one connection, opened when it is first needed and again after it was lost.
//
//   LK1. What fails before it is sent fails as `storage_unavailable`: nothing was applied (ST5).
//   LK2. What was sent and got no answer is unknown, unless it only reads. It is never sent a second time from here.
//   LK3. A connection that has failed in any way is not used again.
import { assertStorable } from "../storable-text.ts";
import { isRefusal, isStatementFault, lostAnswer, unavailable } from "./database-error.ts";
import type { Driver, PgClient, PgValue, Row } from "./driver.ts";

/** What is slower than a megabyte a second does not count as a connection. */
const SLOWEST_BYTES_PER_MS = 1000;

/** How long a statement with so many bytes may take. */
export function limitFor(limitMs: number, bytes: number): number {
  return limitMs + Math.ceil(bytes / SLOWEST_BYTES_PER_MS);
}

export interface LinkOptions {
  readonly where: string;
  /** A statement has no answer any more after so long. */
  readonly limitMs: number;
  driver(): Promise<Driver>;
  /** A new client, not connected yet. */
  client(driver: Driver): PgClient;
  /** Called with every new connection, before it is used. */
  opened?(client: PgClient): Promise<void>;
}

interface Connected {
  readonly client: PgClient;
  readonly driver: Driver;
}

export class Link {
  readonly #options: LinkOptions;
  #connecting: Promise<Connected> | null = null;
  #client: PgClient | null = null;
  #pending = 0;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#connecting !== null;
  }

  /** How many statements wait for their answer. */
  get pending(): number {
    return this.#pending;
  }

  /** A statement that may change something. `bytes` says how much there is to send, if that may be much. */
  query(text: string, values: readonly PgValue[] = [], bytes = 0): Promise<readonly Row[]> {
    return this.#ask(text, values, lostAnswer, bytes);
  }

  /** One that changes nothing: if its answer is lost, nothing is in doubt. */
  read(text: string, values: readonly PgValue[] = []): Promise<readonly Row[]> {
    return this.#ask(text, values, unavailable);
  }

  async #ask(text: string, values: readonly PgValue[], lost: typeof lostAnswer, bytes = 0): Promise<readonly Row[]> {
    for (const value of values) if (typeof value === "string") assertStorable(value);
    const { client, driver } = await this.connect();
    const limitMs = limitFor(this.#options.limitMs, bytes);
    this.#pending++;
    try {
      const { rows } = await client.query({ text, values, types: driver.types, query_timeout: limitMs });
      return rows;
    } catch (error) {
      // Too large for the driver: it was never sent, but what goes with it was.
      if (error instanceof RangeError) this.#forget(client);
      if (isStatementFault(error)) throw error;
      if (isRefusal(error)) throw unavailable(error, this.#options.where);
      this.#forget(client);
      throw lost(error, this.#options.where);
    } finally {
      this.#pending--;
    }
  }

  connect(): Promise<Connected> {
    this.#connecting ??= this.#connect();
    return this.#connecting;
  }

  async #connect(): Promise<Connected> {
    let client: PgClient | null = null;
    try {
      const driver = await this.#options.driver();
      client = this.#options.client(driver);
      const own = client;
      own.on("error", () => this.#forget(own));
      own.on("end", () => this.#forget(own));
      await own.connect();
      await this.#options.opened?.(own);
      this.#client = own;
      return { client: own, driver };
    } catch (error) {
      this.#connecting = null;
      if (client !== null) leave(client);
      throw client === null ? error : unavailable(error, this.#options.where);
    }
  }

  #forget(client: PgClient): void {
    if (this.#client !== client) return;
    this.#client = null;
    this.#connecting = null;
    leave(client);
  }

  async close(): Promise<void> {
    const connecting = this.#connecting;
    this.#connecting = null;
    this.#client = null;
    const connected = await connecting?.catch(() => null);
    await connected?.client.end().catch(() => {});
  }
}

/** Whatever is left of the connection ends by itself; nobody waits for it. */
function leave(client: PgClient): void {
  client.end().catch(() => {});
}
