import type { StoredEntry } from "../../core/journal.ts";
import type { Connection } from "./connection.ts";
import type { SqlValue } from "./driver.ts";

const COLUMNS = 7;
const ROW = "(?, ?, ?, ?, ?, ?, ?)";
const insertOf = (rows: number) =>
  `insert into journal (run, seq, at, type, key, data, hash) values ${Array(rows).fill(ROW).join(", ")}`;

// Measured: a call into the driver costs about as much as a row, and beyond eight rows a statement gains nothing more.
const INSERTS = [8, 4, 2, 1].map((rows) => ({ values: rows * COLUMNS, sql: insertOf(rows) }));
const [LARGEST] = INSERTS as [(typeof INSERTS)[number]];

/**
 * The journal entries of one transaction, whatever runs they belong to, on their way into the table. Their text was checked with the part they
 * came from, so the statements are called directly here.
 */
export class EntryRows {
  readonly #db: Connection;
  #values: SqlValue[] = [];

  constructor(db: Connection) {
    this.#db = db;
  }

  add(n: number, { seq, at, type, key, data, hash }: StoredEntry): void {
    this.#values.push(n, seq, at, type, key, data, hash);
    if (this.#values.length < LARGEST.values) return;
    this.#insert(LARGEST.sql, this.#values);
    this.#values = [];
  }

  /** Writes what is left. */
  flush(): void {
    let from = 0;
    for (const { values, sql } of INSERTS) {
      if (this.#values.length - from < values) continue;
      const isAll = this.#values.length === values;
      this.#insert(sql, isAll ? this.#values : this.#values.slice(from, from + values));
      from += values;
    }
    this.#values = [];
  }

  /** Drops what is left: the part it came from was rolled back. */
  forget(): void {
    this.#values = [];
  }

  #insert(sql: string, values: readonly SqlValue[]): void {
    this.#db.fault("statement");
    this.#db.statement(sql).run(...values);
  }
}
