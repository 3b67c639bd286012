// A link: one connection, opened when it is first needed and again after it was lost.
//
//   LK1. What fails before it is sent fails as \`storage_unavailable\`: nothing was applied (ST5).
//   LK2. What was sent and got no answer is unknown. It is never sent a second time from here.
//   LK3. A connection that has failed in any way is not used again.
import { assertStorable } from "../storable-text.ts";
import { isRefusal, isStatementFault, lostAnswer, unavailable } from "./database-error.ts";
import type { Driver, PgClient, PgValue, Row } from "./driver.ts";

export interface LinkOptions {
  readonly where: string;
  driver(): Promise<Driver>;
  /** A new client, not connected yet. */
  client(driver: Driver): PgClient;
  /** Called with every new connection, before it is used. */
  opened?(client: PgClient): Promise<void>;
  /** The connection is gone. */
  lost?(): void;
}

export class Link {
  readonly #options: LinkOptions;
  #connected: Promise<{ readonly client: PgClient; readonly driver: Driver }> | null = null;
  /** Statements that wait for their answer. */
  pending = 0;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#connected !== null;
  }

  async query(text: string, values: readonly PgValue[] = []): Promise<readonly Row[]> {
    for (const value of values) if (typeof value === "string") assertStorable(value);
    this.pending++;
    try {
      return await this.#query(text, values);
    } finally {
      this.pending--;
    }
  }

  async #query(text: string, values: readonly PgValue[]): Promise<readonly Row[]> {
    const { client, driver } = await this.connect();
    try {
      const { rows } = await client.query({ text, values, types: driver.types });
      return rows;
    } catch (error) {
      if (isStatementFault(error)) throw error;
      if (isRefusal(error)) throw unavailable(error, this.#options.where);
      this.#forget(client);
      throw lostAnswer(error, this.#options.where);
    }
  }

  connect(): Promise<{ readonly client: PgClient; readonly driver: Driver }> {
    this.#connected ??= this.#connect();
    return this.#connected;
  }

  async #connect(): Promise<{ readonly client: PgClient; readonly driver: Driver }> {
    const driver = await this.#options.driver();
    const client = this.#options.client(driver);
    const lost = () => this.#forget(client);
    client.on("error", lost);
    client.on("end", lost);
    try {
      await client.connect();
      await this.#options.opened?.(client);
      this.#current = client;
      return { client, driver };
    } catch (error) {
      this.#connected = null;
      void client.end().catch(() => {});
      throw unavailable(error, this.#options.where);
    }
  }

  #current: PgClient | null = null;

  #forget(client: PgClient): void {
    if (this.#current !== client) return;
    this.#current = null;
    this.#connected = null;
    void client.end().catch(() => {});
    this.#options.lost?.();
  }

  async close(): Promise<void> {
    const connected = this.#connected;
    this.#connected = null;
    this.#current = null;
    const opened = await connected?.catch(() => null);
    await opened?.client.end().catch(() => {});
  }
}
