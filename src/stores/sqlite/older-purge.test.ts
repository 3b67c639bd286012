// What the purge of an older release does to a file that a newer one has brought up to its schema while the older process had it open.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { CounterChange, Store } from "../../core/store.ts";
import { apply, creation, ending, newWorker } from "../../testing/store-cases/case.ts";
import { type Database, loadDriver } from "./driver.ts";
import { sqliteStore } from "./sqlite-store.ts";

/** All that a purge takes away of a run, by the table that it is in. */
const ROWS: Readonly<Record<string, string>> = {
  runs: "n = :n",
  journal: "run = :n",
  state: "run = :n",
  keys: "run = :n",
  tags: "run = :n",
  chunks: "run = :n",
  counters: "key >= 'of/' || :id || '/' and key < 'of/' || :id || '0'",
};

/** The statements of release 0.1.0 before there were holds, in their order; those of chunks came between. */
const OLDER = [
  "delete from counters where key >= 'of/' || :id || '/' and key < 'of/' || :id || '0'",
  "delete from tags where tag = 'vip' and run = :n",
  "delete from journal where run = :n",
  "delete from state where run = :n",
  "delete from keys where run = :n",
  "delete from chunks where run = :n",
  "delete from runs where n = :n",
];

/** In one transaction, as it does: gives the numbers of the runs that it believes to have deleted. */
function purgeAsOlder(db: Database): string[] {
  db.exec("begin immediate");
  const gone = db.prepare("select n, id from runs where ended_at is not null order by ended_at, n").all();
  for (const { n, id } of gone) for (const text of OLDER) db.exec(filled(text, Number(n), String(id)));
  db.exec("commit");
  return gone.map(({ id }) => String(id));
}

function filled(text: string, n: number, id: string): string {
  return text.replaceAll(":n", String(n)).replaceAll(":id", `'${id}'`);
}

function rowsOf(db: Database, n: number, id: string): Record<string, readonly unknown[]> {
  const rows = (table: string, where: string) =>
    db.prepare(filled(`select * from ${table} where ${where}`, n, id)).all();
  return Object.fromEntries(Object.entries(ROWS).map(([table, where]) => [table, rows(table, where)]));
}

/** A run with something in each table, with its end. */
async function keepRun(store: Store, run: string): Promise<void> {
  await apply(store, {
    ...creation(run, { claimed: true, tags: ["vip"] }),
    state: [{ key: "k", data: '"v"' }],
    keys: [{ space: "start/order", key: run, digest: "d" }],
    counters: [spent(run, 5)],
  });
  await store.emit([{ run, start: "s", n: 0, data: '"x"' }]);
  await apply(store, ending(run, 1));
}

function spent(of: string, by: number): CounterChange {
  return { key: "usd", by, max: null, held: false, of };
}

it("C-20 Q20 what is held outlives the purge of an older release, all of its rows, and the other runs go as before", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-older-"));
  const file = join(folder, "pawl.db");
  const store = sqliteStore(file);
  await store.open();
  const db = loadDriver().open(file);
  onTestFinished(async () => {
    db.close();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await store.register(newWorker("w1"));
  for (const run of ["a", "held", "z"]) await keepRun(store, run);
  await store.hold("held", { who: "ada", why: "complaint 4711" });
  const number = Number(db.prepare("select n from runs where id = 'held'").get()?.["n"]);
  const before = rowsOf(db, number, "held");
  const counts = Object.entries(before).map(([table, rows]) => [table, rows.length] as const);
  expect(counts.every(([, rows]) => rows > 0)).toBe(true);

  expect(purgeAsOlder(db)).toEqual(["a", "held", "z"]);
  expect(rowsOf(db, number, "held")).toEqual(before);
  for (const [table, rows] of counts)
    expect(Number(db.prepare(`select count(*) as rows from ${table}`).get()?.["rows"]), table).toBe(rows);

  // What counts on a held run goes on counting, down to nothing as well.
  await apply(store, { ...creation("b", { claimed: true }), counters: [spent("held", -5)] });
  expect(await store.counters("of/held/")).toEqual([]);
  await store.releaseHold("held");
  expect(await store.purge({ succeededBefore: 9e15, failedBefore: 9e15, limit: 9 })).toBe(1);
  expect(Object.values(rowsOf(db, number, "held")).flat()).toEqual([]);
});
