import { PawlError, TerminalError } from "../base/errors.ts";
import type { EffectSpec } from "../core/effect.ts";
import type { UndoInfo } from "../core/undoable-call.ts";

/** A database by its shape, so that no driver is needed: a client or pool of `pg`, or a database of better-sqlite3 or node:sqlite. */
export type InsertDatabase =
  | { query(text: string, values: unknown[]): Promise<{ readonly rows: unknown[] }> }
  | { prepare(text: string): { all(...values: unknown[]): unknown[]; run(...values: unknown[]): unknown } };

export interface InsertOnceOptions {
  /** A client or pool of `pg`, or a database of better-sqlite3 or node:sqlite. */
  readonly db: InsertDatabase;
  /** Its name, and whatever it holds: names are quoted. */
  readonly table: string;
  /** The schema of the table. Default: as the database finds it. */
  readonly schema?: string;
  /** The column that holds the effect's key. It must be unique, and text. */
  readonly keyColumn: string;
  /** The other columns with their values. */
  readonly row: InsertedRow;
  /** The columns that the effect returns beside the key's, of the row as it is in the table. Default: none. */
  readonly returning?: readonly string[];
  /** Whether the row is deleted if the effect has to be undone. Default false. */
  readonly undo?: boolean;
}

/** Columns of a row, by name. */
export type InsertedRow = Readonly<Record<string, unknown>>;

/**
 * Inserts a row once: the database refuses a second one with the same key. In the database of the store itself, `ctx.transaction` is better
 * still.
 *
 * ```ts
 * await ctx.effect("book", insertOnce({ db: pool, table: "bookings", keyColumn: "key", row: { room: 12 } }));
 * ```
 */
export function insertOnce(options: InsertOnceOptions): EffectSpec<InsertedRow> {
  const { db, keyColumn, row, returning = [], undo = false } = options;
  if (Object.hasOwn(row, keyColumn)) throw keyInRow(keyColumn);
  const names = [keyColumn, ...Object.keys(row)];
  const table = (options.schema === undefined ? [] : [options.schema]).concat(options.table).map(quoted).join(".");
  const mark = "query" in db ? (i: number) => `$${i + 1}` : () => "?";
  const key = quoted(keyColumn);
  const insert = `insert into ${table} (${list(names)}) values (${names.map((_, i) => mark(i)).join(", ")}) on conflict (${key}) do nothing`;
  const select = `select ${list([keyColumn, ...returning])} from ${table} where ${key} = ${mark(0)}`;
  const remove = `delete from ${table} where ${key} = ${mark(0)}`;
  return {
    async do(info) {
      await change(db, insert, [info.key, ...Object.values(row)]);
      const [found] = await rowsOf(db, select, [info.key]);
      if (found === undefined) throw notThere(options.table, keyColumn);
      return { ...(found as InsertedRow) };
    },
    ...(undo && { undo: (_: unknown, info: UndoInfo) => change(db, remove, [info.undoes]) }),
    class: "write",
    idempotent: true,
  };
}

async function change(db: InsertDatabase, text: string, values: unknown[]): Promise<void> {
  if ("query" in db) await db.query(text, values);
  else db.prepare(text).run(...values);
}

async function rowsOf(db: InsertDatabase, text: string, values: unknown[]): Promise<unknown[]> {
  return "query" in db ? (await db.query(text, values)).rows : db.prepare(text).all(...values);
}

function list(names: readonly string[]): string {
  return names.map(quoted).join(", ");
}

/** An identifier of SQL, whatever it holds. */
function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function keyInRow(column: string): PawlError {
  return new PawlError(
    "invalid_argument",
    `\`row\` has a value for ${JSON.stringify(column)}, which is the column of the key. Leave it out: the effect's key is put there.`,
    { fields: { column } },
  );
}

function notThere(table: string, column: string): TerminalError {
  return new TerminalError(
    `The row was inserted into ${JSON.stringify(table)}, and is not found by ${JSON.stringify(column)}. Look for a trigger or a policy of the table that changes or hides it.`,
  );
}
