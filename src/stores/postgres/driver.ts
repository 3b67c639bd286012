// What is needed of `pg`, which is an optional peer: it is loaded when a PostgreSQL store is opened, and not before.
import { PawlError } from "../../base/errors.ts";

export type PgValue = string | number | boolean | null | Uint8Array | readonly PgValue[];
export type Row = Readonly<Record<string, unknown>>;

export interface PgQuery {
  readonly text: string;
  readonly values?: readonly PgValue[];
  /** Milliseconds; the connection's own limit otherwise. */
  readonly query_timeout?: number;
  readonly types?: { getTypeParser(oid: number, format?: string): (text: string) => unknown };
}

export interface PgResult {
  readonly rows: readonly Row[];
  readonly command: string;
}

/** A client of `pg`, connected or not. */
export interface PgClient {
  connect(): Promise<unknown>;
  query(query: PgQuery): Promise<PgResult>;
  end(): Promise<unknown>;
  on(event: "error" | "end", listener: (error?: Error) => void): unknown;
  on(event: "notice", listener: (notice: { message: string }) => void): unknown;
  on(event: "notification", listener: (message: { channel: string; payload?: string }) => void): unknown;
}

interface PgModule {
  readonly Client: new (options: object) => PgClient;
  readonly types: { getTypeParser(oid: number, format?: string): (text: string) => unknown };
}

const INT8 = 20;

export class Driver {
  readonly #pg: PgModule;
  /** Our bigints are counters and positions: numbers hold them. */
  readonly types: NonNullable<PgQuery["types"]>;

  constructor(pg: PgModule) {
    this.#pg = pg;
    this.types = {
      getTypeParser: (oid, format) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)),
    };
  }

  client(options: object): PgClient {
    return new this.#pg.Client(options);
  }
}

let loaded: Promise<Driver> | null = null;

export function loadDriver(): Promise<Driver> {
  loaded ??= load().catch((error: unknown) => {
    loaded = null;
    throw error;
  });
  return loaded;
}

async function load(): Promise<Driver> {
  try {
    const name = "pg";
    const module = (await import(name)) as { default?: PgModule } & PgModule;
    return new Driver(module.default ?? module);
  } catch (error) {
    throw new PawlError(
      "invalid_argument",
      "A PostgreSQL store needs the package `pg`, which could not be loaded. Install it with `npm install pg`.",
      { cause: error },
    );
  }
}
