// The choice of a SQLite
// `node:sqlite` where Node has it and it is new enough, else the package with the same interface. Both are loaded only when a
// store is opened, and by the same rule in every thread: two different SQLite libraries on one file would drop each other's locks.
import { createRequire } from "node:module";
import { PawlError } from "../../base/errors.ts";

export type SqlValue = string | number | bigint | Uint8Array | null;

export interface Statement {
  run(...values: SqlValue[]): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint };
  get(...values: SqlValue[]): Record<string, SqlValue> | undefined;
  all(...values: SqlValue[]): Record<string, SqlValue>[];
  setReturnArrays(enabled: boolean): void;
  setReadBigInts(enabled: boolean): void;
}

export interface Database {
  readonly isTransaction: boolean;
  prepare(sql: string): Statement;
  exec(sql: string): void;
  /** In the package, the file stays open until the statements were collected as well; nothing can finalize them earlier. */
  close(): void;
}

export interface Driver {
  readonly name: string;
  readonly version: string;
  open(path: string): Database;
}

interface SqliteModule {
  readonly DatabaseSync: new (path: string, options: { timeout: number }) => Database;
}

/** Older ones can corrupt a WAL file that two connections write to; https://www.sqlite.org/wal.html#walresetbug. */
export const OLDEST_SQLITE = "3.51.3";

const require = createRequire(import.meta.url);

const MODULES: readonly string[] = ["node:sqlite", "@photostructure/sqlite"];

let chosen: Driver | null = null;

export function loadDriver(): Driver {
  chosen ??= chooseDriver(MODULES, (name) => require(name) as SqliteModule);
  return chosen;
}

/** Takes the first module that loads and is new enough, or says what is wrong with each. */
export function chooseDriver(names: readonly string[], load: (name: string) => SqliteModule): Driver {
  const reasons: string[] = [];
  for (const name of names) {
    try {
      const driver = driverOf(name, load(name));
      if (isAtLeast(driver.version, OLDEST_SQLITE)) return driver;
      reasons.push(`${name} carries SQLite ${driver.version}`);
    } catch (error) {
      reasons.push(`${name} does not load (${error instanceof Error ? error.message.split("\n")[0] : String(error)})`);
    }
  }
  throw new PawlError(
    "sqlite_too_old",
    `Pawl needs SQLite ${OLDEST_SQLITE} or newer: older ones can corrupt a file that two processes write to. Here ${reasons.join(", and ")}. Install the package @photostructure/sqlite, or use Node 24.21 or newer.`,
    { fields: { needed: OLDEST_SQLITE } },
  );
}

function driverOf(name: string, { DatabaseSync }: SqliteModule): Driver {
  // A busy timeout would block the event loop; whoever waits for a lock does so outside of SQLite (P30).
  const open = (path: string) => new DatabaseSync(path, { timeout: 0 });
  const probe = open(":memory:");
  try {
    const version = String(probe.prepare("select sqlite_version() as version").get()?.version);
    return { name, version, open };
  } finally {
    probe.close();
  }
}

function isAtLeast(version: string, oldest: string): boolean {
  const [is = [], needed = []] = [version, oldest].map((text) => text.split(".").map(Number));
  for (const [i, part] of needed.entries()) {
    const difference = (is[i] ?? 0) - part;
    if (difference !== 0) return difference > 0;
  }
  return true;
}
