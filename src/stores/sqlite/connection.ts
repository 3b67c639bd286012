// The one connection of this process
// Owns the open database, its prepared statements and the two ways through it. Everything between `begin` and `commit` is
// synchronous, so no other call of this process can get in between and there is nothing to lock here.
//
//   C1. It never blocks the event loop to wait: a lock held by another process is tried again every millisecond (P30).
//   C2. What fails before COMMIT was rolled back, and the error says so. What fails at COMMIT is unknown, unless SQLite cannot have
//       written it: the connection is closed and opened again by the next call, so that what is read then is what is on disk (ST5, P17).
//   C3. While other workers are registered there is a pause after each commit, or they would hardly ever find the lock free (P30).
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { PawlError } from "../../base/errors.ts";
import { assertStorable } from "../storable-text.ts";
import { type Database, type Driver, loadDriver, type SqlValue, type Statement } from "./driver.ts";
import { describeHolders } from "./lock-holder.ts";
import { refuseNetworkDisk } from "./network-disk.ts";
import { checkFile, migrate } from "./schema.ts";
import { isBusy, isUnreadableNumber, isWithoutEffect, storageError, unknownOutcome } from "./storage-error.ts";

/** `power`: an acknowledged commit survives power loss. `process`: it survives the death of the process only. */
export type Durability = "power" | "process";

export type FaultPoint = "begin" | "statement" | "before-commit" | "commit" | "after-commit";

export interface ConnectionOptions {
  readonly durability: Durability;
  /** How long a lock that others hold is waited for. */
  readonly giveUpMs?: number;
  /** How long the file is left to others after each commit, while there are any. */
  readonly courtesyMs?: number;
  /** Called at each point of a write; throwing there is an error of SQLite at that point. For tests. */
  readonly fault?: (point: FaultPoint) => void;
}

export type Row = Record<string, SqlValue>;

const RETRY_MS = 1;
const COURTESY_MS = 1;
const GIVE_UP_MS = 30_000;

// `synchronous` as SQLite reports it.
export const SYNCHRONOUS: Readonly<Record<Durability, number>> = { power: 2, process: 1 };

const BUSY: unique symbol = Symbol("busy");

// Captured at load: the determinism guard replaces the globals later. These waits are for the machine, never for virtual time.
const { setTimeout: startTimer } = globalThis;
const { performance } = globalThis;
const realNow = () => performance.now();
const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    startTimer(resolve, ms);
  });

export class Connection {
  readonly path: string;
  readonly #options: ConnectionOptions;
  /** Nothing that was written since the last commit is there any more. */
  readonly #onLoss: () => void;
  #driver: Driver | null = null;
  #db: Database | null = null;
  #statements = new Map<string, Statement>();
  #arrayStatements = new Map<string, Statement>();
  #bigStatements = new Map<string, Statement>();
  #isWanted = false;
  #lastCommitAt = 0;
  /** How many other workers write to this file, as far as this process knows. */
  others: () => number = () => 0;

  constructor(path: string, options: ConnectionOptions, onLoss: () => void) {
    this.path = path;
    this.#options = options;
    this.#onLoss = onLoss;
  }

  get #giveUpMs(): number {
    return this.#options.giveUpMs ?? GIVE_UP_MS;
  }

  get durability(): Durability {
    return this.#options.durability;
  }

  get sqliteVersion(): string {
    return this.#driver?.version ?? "";
  }

  async open(): Promise<void> {
    const wasWanted = this.#isWanted;
    this.#isWanted = true;
    try {
      await this.#retry(() => this.#database());
    } catch (error) {
      this.#isWanted = wasWanted;
      throw error;
    }
  }

  /** Leaves everything in the file itself, where it can be copied, unless others are still at work on it. */
  close(): void {
    this.#isWanted = false;
    try {
      this.#db?.exec("pragma wal_checkpoint(truncate)");
    } catch {
      // The WAL file keeps it.
    }
    this.#disconnect();
  }

  /** A prepared statement for the hot path; whoever calls it directly checks its text first. */
  statement(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database().prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** A statement of the user's, who may have any number of them: it is not kept. */
  prepare(sql: string): Statement {
    return this.#database().prepare(sql);
  }

  get isTransaction(): boolean {
    return this.#db?.isTransaction === true;
  }

  /** Changes rows; returns how many. */
  run(sql: string, ...values: SqlValue[]): number {
    return Number(this.insert(sql, ...values).changes);
  }

  insert(
    sql: string,
    ...values: SqlValue[]
  ): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint } {
    checkTexts(values);
    this.fault("statement");
    return this.statement(sql).run(...values);
  }

  get(sql: string, ...values: SqlValue[]): Row | undefined {
    checkTexts(values);
    try {
      return this.statement(sql).get(...values);
    } catch (error) {
      return this.#readAnyNumber(error, sql, values)[0];
    }
  }

  all(sql: string, ...values: SqlValue[]): Row[] {
    checkTexts(values);
    try {
      return this.statement(sql).all(...values);
    } catch (error) {
      return this.#readAnyNumber(error, sql, values);
    }
  }

  /** Rows as arrays, in the order of their columns: half the cost of objects, where there are thousands. */
  arrays(sql: string, ...values: SqlValue[]): SqlValue[][] {
    checkTexts(values);
    let statement = this.#arrayStatements.get(sql);
    if (statement === undefined) {
      statement = this.#database().prepare(sql);
      statement.setReturnArrays(true);
      this.#arrayStatements.set(sql, statement);
    }
    try {
      return statement.all(...values) as unknown as SqlValue[][];
    } catch (error) {
      return this.#readAnyNumber(error, sql, values).map((row) => Object.values(row));
    }
  }

  /** One number that no Pawl wrote must not hide the rows beside it: it is read as NaN, and whoever reads that row names it. */
  #readAnyNumber(error: unknown, sql: string, values: readonly SqlValue[]): Row[] {
    if (!isUnreadableNumber(error)) throw error;
    let statement = this.#bigStatements.get(sql);
    if (statement === undefined) {
      statement = this.#database().prepare(sql);
      statement.setReadBigInts(true);
      this.#bigStatements.set(sql, statement);
    }
    return statement.all(...values).map((row) => {
      const columns = Object.entries(row).map(([name, value]) => [name, safeNumber(value)] as const);
      return Object.fromEntries(columns);
    });
  }

  fault(point: FaultPoint): void {
    this.#options.fault?.(point);
  }

  /** Reads without a transaction of its own: for single statements. */
  read<T>(work: () => T): Promise<T> {
    return this.#retry(work);
  }

  /** Reads several statements in one snapshot. */
  snapshot<T>(work: () => T): Promise<T> {
    return this.#retry(() => {
      this.statement("begin").run();
      try {
        return work();
      } finally {
        this.#rollback();
      }
    });
  }

  /**
   * Runs `work` in one write transaction, and if that fails what `mend` gives instead, if it does not throw. Both may run again if the lock is
   * taken, so they must change nothing outside the database.
   */
  write<T>(work: () => T, mend: (error: unknown) => () => T = rethrow): Promise<T> {
    const attempt = () => {
      try {
        return this.#transaction(work);
      } catch (error) {
        return this.#transaction(mend(error));
      }
    };
    return this.others() > 0 ? this.#politely(attempt) : this.#retry(attempt);
  }

  /**
   * The same for what may be lost by itself: the write ahead log is not synced, so it costs no wait for the disk. Where a commit follows that is synced,
   * this is on the disk before it: it stands earlier in the same log.
   */
  writeUnsynced<T>(work: () => T): Promise<T> {
    const attempt = () => {
      this.#database().exec(`pragma synchronous = ${SYNCHRONOUS.process}`);
      try {
        return this.#transaction(work);
      } finally {
        this.#syncAgain();
      }
    };
    return this.others() > 0 ? this.#politely(attempt) : this.#retry(attempt);
  }

  /** A connection that does not take it back is not used any more: the next one begins as it should. */
  #syncAgain(): void {
    try {
      this.#db?.exec(`pragma synchronous = ${SYNCHRONOUS[this.durability]}`);
    } catch {
      this.#disconnect();
    }
  }

  async #politely<T>(attempt: () => T): Promise<T> {
    const { courtesyMs = COURTESY_MS } = this.#options;
    while (this.others() > 0 && realNow() - this.#lastCommitAt < courtesyMs) await pause(courtesyMs);
    return this.#retry(attempt);
  }

  /** The first attempt is nearly always the last; only others cost a promise more. */
  #retry<T>(attempt: () => T): Promise<T> {
    try {
      const result = this.#unlessBusy(attempt, this.#giveUpMs <= 0);
      return result === BUSY ? this.#keepTrying(attempt) : Promise.resolve(result);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #keepTrying<T>(attempt: () => T): Promise<T> {
    const giveUpAt = realNow() + this.#giveUpMs;
    for (;;) {
      await pause(RETRY_MS);
      const result = this.#unlessBusy(attempt, realNow() >= giveUpAt);
      if (result !== BUSY) return result;
    }
  }

  #unlessBusy<T>(attempt: () => T, isLast: boolean): T | typeof BUSY {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw storageError(error, this.path);
      if (!isLast) return BUSY;
      throw storageError(error, this.path, `It was so for ${this.#giveUpMs / 1000} s.${describeHolders(this.path)}`);
    }
  }

  #transaction<T>(work: () => T): T {
    this.fault("begin");
    this.statement("begin immediate").run();
    try {
      const result = work();
      this.fault("before-commit");
      this.#commit();
      return result;
    } catch (error) {
      this.#rollback();
      this.#onLoss();
      throw error;
    }
  }

  #commit(): void {
    try {
      this.fault("commit");
      this.statement("commit").run();
      this.fault("after-commit");
    } catch (error) {
      if (isWithoutEffect(error)) throw error;
      this.#disconnect();
      throw unknownOutcome(error, this.path);
    } finally {
      this.#lastCommitAt = realNow();
    }
  }

  // SQLite rolls back by itself after some errors. If it cannot be made to, the connection is of no use any more.
  #rollback(): void {
    try {
      if (this.#db?.isTransaction) this.statement("rollback").run();
    } catch {
      this.#disconnect();
    }
  }

  // One driver closes for good only when its statements were collected, so an open transaction is ended first: it would keep the lock.
  #disconnect(): void {
    const db = this.#db;
    this.#db = null;
    this.#statements = new Map();
    this.#arrayStatements = new Map();
    this.#bigStatements = new Map();
    this.#onLoss();
    for (const end of [() => db?.isTransaction && db.exec("rollback"), () => db?.close()]) {
      try {
        end();
      } catch {
        // What could not be written back stays in the WAL file and is found there by the next one who opens it.
      }
    }
  }

  #database(): Database {
    if (this.#db !== null) return this.#db;
    if (!this.#isWanted)
      throw new PawlError("closed", `The store ${this.path} is not open. Open it before use, and not after close().`);
    this.#driver ??= loadDriver();
    makeFolder(this.path);
    refuseNetworkDisk(this.path);
    const db = this.#driver.open(this.path);
    try {
      prepareFile(db, this.path, this.#options.durability);
    } catch (error) {
      db.close();
      throw error;
    }
    this.#db = db;
    return db;
  }
}

function rethrow(error: unknown): never {
  throw error;
}

function makeFolder(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true });
  } catch (cause) {
    throw new PawlError(
      "storage_unavailable",
      `The folder of ${path} cannot be created (${(cause as Error).message}). Give another path, or create it.`,
      { fields: { path }, cause },
    );
  }
}

function prepareFile(db: Database, path: string, durability: Durability): void {
  db.exec("pragma busy_timeout = 0");
  checkFile(db, path);
  // Drivers differ in their defaults, so what matters is set and read back.
  set(db, path, "journal_mode", "wal", "wal");
  set(db, path, "synchronous", String(SYNCHRONOUS[durability]), SYNCHRONOUS[durability]);
  set(db, path, "mmap_size", "0", 0);
  migrate(db, path);
}

function set(db: Database, path: string, setting: string, value: string, expected: SqlValue): void {
  db.prepare(`pragma ${setting} = ${value}`).all();
  const actual = Object.values(db.prepare(`pragma ${setting}`).get() ?? {})[0] ?? expected;
  if (actual === expected) return;
  throw new PawlError(
    "storage_unavailable",
    `The database ${path} cannot be used safely: SQLite keeps ${setting} at "${actual}" instead of "${expected}". Put the file on a local disk that this process may write to; for tests there is memoryStore().`,
    { fields: { path, setting, actual, expected } },
  );
}

function safeNumber(value: SqlValue): SqlValue {
  if (typeof value !== "bigint") return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : Number.NaN;
}

function checkTexts(values: readonly SqlValue[]): void {
  for (const value of values) if (typeof value === "string") assertStorable(value);
}
