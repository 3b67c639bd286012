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
  readonly #values: SqlValue[] = Array(LARGEST.values).fill(null);
  #count = 0;

  constructor(db: Connection) {
    this.#db = db;
  }

  add(n: number, { seq, at, type, key, data, hash }: StoredEntry): void {
    const values = this.#values;
    const i = this.#count;
    values[i] = n;
    values[i + 1] = seq;
    values[i + 2] = at;
    values[i + 3] = type;
    values[i + 4] = key;
    values[i + 5] = data;
    values[i + 6] = hash;
    this.#count = i + COLUMNS;
    if (this.#count === LARGEST.values) this.flush();
  }

  /** Writes what is left. */
  flush(): void {
    const count = this.#count;
    this.#count = 0;
    let from = 0;
    for (const { values, sql } of INSERTS) {
      if (count - from < values) continue;
      this.#insert(sql, values === LARGEST.values ? this.#values : this.#values.slice(from, from + values));
      from += values;
    }
  }

  /** Drops what is left: the part it came from was rolled back. */
  forget(): void {
    this.#count = 0;
  }

  #insert(sql: string, values: readonly SqlValue[]): void {
    this.#db.fault("statement");
    this.#db.statement(sql).run(...values);
  }
}
