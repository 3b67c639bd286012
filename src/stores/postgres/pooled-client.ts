import { PawlError } from "../../base/errors.ts";
import type { PgClient, PgQuery, PgResult } from "./driver.ts";

/** A pool of `pg`, as far as the store needs one. */
export interface PgPool {
  connect(): Promise<PooledConnection>;
  readonly options?: { readonly max?: number };
}

interface PooledConnection {
  query(query: PgQuery): Promise<PgResult>;
  on(event: string, listener: (...args: never[]) => void): unknown;
  release(destroy?: boolean): void;
}

/** A connection that is borrowed from a pool for as long as the store is open. It does not go back: it may be listening, or broken. */
export class PooledClient implements PgClient {
  readonly #pool: PgPool;
  readonly #listeners: (readonly [event: string, listener: (...args: never[]) => void])[] = [];
  #connection: PooledConnection | null = null;

  constructor(pool: PgPool) {
    this.#pool = pool;
  }

  async connect(): Promise<void> {
    const connection = await this.#pool.connect();
    this.#connection = connection;
    for (const [event, listener] of this.#listeners) connection.on(event, listener);
  }

  query(query: PgQuery): Promise<PgResult> {
    return this.#connection === null ? Promise.reject(new Error("not connected")) : this.#connection.query(query);
  }

  async end(): Promise<void> {
    const connection = this.#connection;
    this.#connection = null;
    connection?.release(true);
  }

  on(event: string, listener: (...args: never[]) => void): void {
    this.#listeners.push([event, listener]);
  }
}

/** Whoever waits for a connection that never gets free would wait for ever. */
export function assertPoolSize(pool: PgPool, needed: number): void {
  const max = pool.options?.max;
  if (max === undefined || max >= needed) return;
  throw new PawlError(
    "invalid_argument",
    `The pool allows ${max} connections; the store keeps up to ${needed} for itself. Raise its \`max\`, or give the store a URL.`,
    { fields: { max, needed } },
  );
}
