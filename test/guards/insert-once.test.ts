// Rows that are inserted once, in SQLite and in PostgreSQL.
import { insertOnce } from "pawl/guards";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { InsertDatabase } from "../../src/guards/insert-once.ts";
import { loadDriver } from "../../src/stores/sqlite/driver.ts";
import { infoOf, loseRecord, undoInfoOf } from "./lost-record.ts";

interface Table {
  readonly db: InsertDatabase;
  /** Runs SQL of the test's own. */
  all(text: string): Promise<Record<string, unknown>[]>;
  readonly schema?: string;
}

/** Not a literal, so that the compiler does not look for types that there are none of. */
const PG: string = "pg";

async function sqlite(): Promise<Table> {
  const db = loadDriver().open(":memory:");
  onTestFinished(() => db.close());
  return { db, all: async (text) => db.prepare(text).all() };
}

async function postgres(): Promise<Table> {
  const { default: pg } = await import(PG);
  const client = new pg.Client({ connectionString: inject("postgresUrl") });
  await client.connect();
  const schema = `guards ${process.pid} "quoted"`;
  const quoted = `"${schema.replaceAll('"', '""')}"`;
  await client.query(`create schema ${quoted}`);
  await client.query(`set search_path to ${quoted}`);
  onTestFinished(async () => {
    await client.query(`drop schema ${quoted} cascade`);
    await client.end();
  });
  return { db: client, schema, all: async (text) => (await client.query(text)).rows };
}

describe.each([
  ["sqlite", sqlite, "integer primary key autoincrement"],
  ["postgres", postgres, "integer primary key generated always as identity"],
] as const)("insertOnce on %s", (_, open, id) => {
  const make = async () => {
    const table = await open();
    await table.all(`create table bookings (id ${id}, "key" text unique, room integer, "odd ""name" text)`);
    const { db, schema } = table;
    const where = { db, table: "bookings", keyColumn: "key", ...(schema !== undefined && { schema }) };
    return { ...table, where };
  };

  it("S0-34 inserts one row when it is done again; a plain insert, its unguarded twin, inserts two", async () => {
    const { where, all } = await make();
    const row = { room: 12, 'odd "name': "it's; drop table bookings --" };
    const book = () => insertOnce({ ...where, row, returning: ["id", 'odd "name'] });
    const [first, second] = await loseRecord(book, "run-1/book");
    expect(first).toEqual({ key: "run-1/book", id: 1, 'odd "name': row['odd "name'] });
    expect(second).toEqual(first);
    await loseRecord(book, "run-2/book");
    expect(await all(`select "key", room from bookings order by "key"`)).toEqual([
      { key: "run-1/book", room: 12 },
      { key: "run-2/book", room: 12 },
    ]);
    await loseRecord(() => ({ do: () => all("insert into bookings (room) values (13)") }));
    expect(await all("select room from bookings where room = 13")).toEqual([{ room: 13 }, { room: 13 }]);
  });

  it("undo deletes the row, whatever key it is given, and leaves others", async () => {
    const { where, all } = await make();
    const spec = insertOnce({ ...where, row: { room: 12 }, undo: true });
    await spec.do(infoOf("run-1/book"));
    const second = await spec.do(infoOf("run-2/book"));
    for (const attempt of [1, 2]) await spec.undo?.(second, undoInfoOf("run-2/book", attempt));
    expect(await all(`select "key" from bookings`)).toEqual([{ key: "run-1/book" }]);
    expect(insertOnce({ ...where, row: {} }).undo).toBeUndefined();
  });

  it("does not swallow other rules of the table, and refuses a row that names the key", async () => {
    const { where, all } = await make();
    await all("create unique index one_room on bookings (room)");
    await insertOnce({ ...where, row: { room: 12 } }).do(infoOf("run-1/book"));
    await expect(insertOnce({ ...where, row: { room: 12 } }).do(infoOf("run-2/book"))).rejects.toThrow(/unique/i);
    expect(() => insertOnce({ ...where, row: { key: "mine" } })).toThrow(/Leave it out/);
  });
});
