// What a store does with its file: makes it, recognises it, refuses it, keeps it safe.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { doctor } from "../../client/doctor.ts";
import type { Store } from "../../core/store.ts";
import { claimRequest, creation, ending, newWorker } from "../../testing/store-cases/case.ts";
import { type Database, loadDriver } from "./driver.ts";
import { checkFile, LATEST_SCHEMA, MIGRATIONS, migrate, schemaVersion } from "./schema.ts";
import { type SqliteStoreOptions, sqliteStore } from "./sqlite-store.ts";

let folder: string;
let file: string;
const stores: Store[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-file-"));
  file = join(folder, "pawl.db");
});

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(options: SqliteStoreOptions = {}, path = file): Promise<Store> {
  const store = sqliteStore(path, options);
  await store.open();
  stores.push(store);
  return store;
}

/** A file with some runs in it, closed. */
async function filled(runs = 1): Promise<void> {
  const store = await open();
  const ids = Array.from({ length: runs }, (_, i) => `r${i}`);
  await store.commit({ worker: null, runs: ids.map((id) => creation(id)) });
  await store.close();
}

function sql(text: string, path = file): void {
  const db = loadDriver().open(path);
  db.exec(text);
  db.close();
}

describe("a new file", () => {
  it("is made with its folders, in the newest schema, and carries Pawl's mark", async () => {
    const path = join(folder, "a", "b", "pawl.db");
    const store = await open({}, path);
    expect((await store.inspect()).schema).toBe(LATEST_SCHEMA);
    await store.close();
    expect(readFileSync(path).subarray(68, 72).toString()).toBe("PAWL");
  });

  it("may be an empty one that is there already", async () => {
    writeFileSync(file, "");
    expect(await (await open()).run("r")).toBeNull();
  });

  it("is refused by name where there can be none", async () => {
    writeFileSync(join(folder, "plain"), "");
    await expect(open({}, join(folder, "plain", "pawl.db"))).rejects.toMatchObject({ code: "storage_unavailable" });
    await expect(open({}, folder)).rejects.toMatchObject({
      code: "storage_unavailable",
      message: expect.stringContaining("cannot be opened"),
    });
    expect(() => sqliteStore(":memory:")).toThrow(/memoryStore/);
    expect(() => sqliteStore("")).toThrow(/no path/);
  });
});

describe("settings", () => {
  it("I1 B72 synchronous FULL, WAL and no memory map are set and reported; NORMAL only on request", async () => {
    const power = await (await open()).inspect();
    expect(power.settings).toMatchObject({ journal_mode: "wal", synchronous: 2, mmap_size: 0, path: file });
    expect(power.settings.bytes).toBeGreaterThan(0);
    const quick = await (await open({ durability: "process" }, join(folder, "other.db"))).inspect();
    expect(quick.settings).toMatchObject({ journal_mode: "wal", synchronous: 1 });
    expect(power.version).toBe(loadDriver().version);
  });

  it("are set again when the connection was replaced", async () => {
    let isBroken = true;
    const store = await open({
      fault: (point) => {
        if (point === "commit" && isBroken) throw Object.assign(new Error("disk I/O error"), { errcode: 10 });
      },
    });
    await expect(store.register(newWorker("w1"))).rejects.toMatchObject({ code: "unknown_outcome" });
    isBroken = false;
    expect((await store.inspect()).settings).toMatchObject({ journal_mode: "wal", synchronous: 2 });
  });
});

describe("opening and closing", () => {
  it("what was committed is there after closing and opening again", async () => {
    await filled(3);
    const store = await open();
    expect((await store.runs({ limit: 9 })).map(({ id }) => id)).toEqual(["r2", "r1", "r0"]);
    expect((await store.journal("r0")).length).toBe(1);
  });

  it("a store that is not open refuses by code", async () => {
    const store = sqliteStore(file);
    await expect(store.run("r")).rejects.toMatchObject({ code: "closed" });
    await store.open();
    await store.close();
    await expect(store.run("r")).rejects.toMatchObject({ code: "closed" });
    await expect(store.commit({ worker: null, runs: [creation("r")] })).rejects.toMatchObject({ code: "closed" });
  });

  it("engines that share one store close it together", async () => {
    const store = await open();
    await store.open();
    await store.close();
    expect(await store.run("r")).toBeNull();
    await store.close();
    await expect(store.run("r")).rejects.toMatchObject({ code: "closed" });
  });
});

/** As far as locks allow it. */
function makeOurs(db: Database): void {
  try {
    migrate(db, file);
  } catch (error) {
    expect(error).toMatchObject({ message: expect.stringContaining("locked") });
  }
}

describe("a file that is not ours", () => {
  it("B72 a file that another process makes ours while this one looks is no stranger's", () => {
    const [db, other] = [loadDriver().open(file), loadDriver().open(file)];
    const looking: Database = {
      get isTransaction() {
        return db.isTransaction;
      },
      exec: (text) => db.exec(text),
      close: () => db.close(),
      prepare: (text) => {
        if (text.includes("sqlite_schema")) makeOurs(other);
        return db.prepare(text);
      },
    };
    expect(() => checkFile(looking, file)).not.toThrow();
    migrate(other, file);
    expect(() => checkFile(looking, file)).not.toThrow();
    for (const each of [db, other]) each.close();
  });

  it("any other file is refused and left alone", async () => {
    writeFileSync(file, "a shopping list, long enough to be no accident ".repeat(50));
    const before = readFileSync(file);
    await expect(open()).rejects.toMatchObject({ code: "not_a_store", message: expect.stringContaining(file) });
    expect(readFileSync(file)).toEqual(before);
  });

  it("somebody else's database is refused and left alone", async () => {
    sql("create table customers (id integer primary key)");
    const before = readFileSync(file);
    await expect(open()).rejects.toMatchObject({
      code: "not_a_store",
      message: expect.stringContaining("not one of Pawl"),
    });
    expect(readFileSync(file)).toEqual(before);
    const marked = join(folder, "marked.db");
    sql("pragma application_id = 42; create table t (a); drop table t", marked);
    await expect(open({}, marked)).rejects.toMatchObject({ code: "not_a_store" });
  });

  it("I23 a file of a newer Pawl is refused, with both versions, and left alone", async () => {
    await filled();
    sql(`update meta set value = '${LATEST_SCHEMA + 1}' where key = 'schema_version'`);
    await expect(open()).rejects.toMatchObject({
      code: "newer_schema",
      message: expect.stringMatching(`schema ${LATEST_SCHEMA + 1}.*knows schema ${LATEST_SCHEMA}.*Upgrade`),
      fields: { found: LATEST_SCHEMA + 1, known: LATEST_SCHEMA },
    });
    sql(`update meta set value = '${LATEST_SCHEMA}' where key = 'schema_version'`);
    expect(await (await open()).run("r0")).not.toBeNull();
  });
});

describe("migrations", () => {
  it("are numbered without a gap", () => {
    expect(MIGRATIONS.map(({ version }) => version)).toEqual(MIGRATIONS.map((_, i) => i + 1));
  });

  it("B71 each is one transaction: a step that fails leaves the steps before it and nothing of itself", () => {
    const db = loadDriver().open(file);
    const steps = [
      { version: 1, sql: "create table a (x)" },
      { version: 2, sql: "create table b (x); insert into nowhere values (1)" },
    ];
    expect(() => migrate(db, file, steps)).toThrow(/nowhere/);
    expect(schemaVersion(db)).toBe(1);
    expect(
      db
        .prepare("select name from sqlite_schema where type = 'table' order by name")
        .all()
        .map((row) => row.name),
    ).toEqual(["a", "meta"]);
    migrate(db, file, [steps[0] as (typeof steps)[0], { version: 2, sql: "create table b (x)" }]);
    migrate(db, file, [steps[0] as (typeof steps)[0], { version: 2, sql: "create table b (x)" }]);
    expect(schemaVersion(db)).toBe(2);
    db.close();
  });
});

describe("damage", () => {
  const named = { code: "corrupted_journal", message: expect.stringMatching(/is damaged.*Restore a backup/) };

  it("a truncated file is reported as damaged, with its name, and never read as something else", async () => {
    await filled(2000);
    truncateSync(file, Math.floor(statSync(file).size / 2 / 4096) * 4096);
    const reading = open().then((store) => store.runs({ limit: 5000 }));
    await expect(reading).rejects.toMatchObject(named);
    const writing = open().then((store) => store.commit({ worker: null, runs: [creation("new")] }));
    await expect(writing).rejects.toMatchObject({ code: "corrupted_journal" });
  });

  it("a page of rubbish is found by inspect", async () => {
    await filled(2000);
    const bytes = readFileSync(file);
    bytes.fill(0x5a, 4096 * 20, 4096 * 21);
    writeFileSync(file, bytes);
    const store = await open();
    const report = await store.inspect();
    expect(report.faults.length).toBeGreaterThan(0);
    expect(report.faults[0]).toMatch(/damaged.*Restore a backup/);
  });

  it("a file whose beginning is gone is no store", async () => {
    await filled();
    const bytes = readFileSync(file);
    bytes.fill(0, 0, 100);
    writeFileSync(file, bytes);
    await expect(open()).rejects.toMatchObject({ code: "not_a_store" });
  });

  it.each([
    ["state", "update runs set state = 'odd' where id = 'r0'"],
    ["tags", "update runs set tags = '{' where id = 'r0'"],
    ["version", "update runs set version = 'one' where id = 'r0'"],
    ["deadline", "update runs set deadline = 9e999 where id = 'r0'"],
  ])(
    "B69 a row with an impossible %s is named, is not claimed, and keeps no other from being claimed",
    async (column, edit) => {
      await filled(2);
      sql(edit);
      const store = await open();
      await store.register(newWorker("w1"));
      await expect(store.run("r0")).rejects.toMatchObject({ code: "corrupted_journal", fields: { run: "r0", column } });
      const claimed = await store.claim(claimRequest({ limit: 1 }));
      expect(claimed.map(({ run }) => run)).toEqual(["r1"]);
      expect((await store.inspect()).faults).toEqual([expect.stringContaining("row of run r0 is damaged")]);
    },
  );

  it("A7 B69 a number that no Pawl wrote is damage too, and hides no other row", async () => {
    await filled(2);
    sql("update runs set wake = 9223372036854775807 where id = 'r0'");
    const store = await open();
    const fields = { run: "r0", column: "wake" };
    await expect(store.run("r0")).rejects.toMatchObject({ code: "corrupted_journal", fields });
    await expect(store.runs({ limit: 9 })).rejects.toMatchObject({ code: "corrupted_journal", fields });
    expect((await store.runs({ limit: 1 })).map(({ id }) => id)).toEqual(["r1"]);
    await store.register(newWorker("w1"));
    expect((await store.claim(claimRequest({ limit: 1 }))).map(({ run }) => run)).toEqual(["r1"]);
    const { findings, journals } = await doctor(store);
    expect(findings.map(({ message }) => message)).toContainEqual(expect.stringContaining("row of run r0 is damaged"));
    expect(journals).toMatchObject({ runs: 1, isComplete: true });
  });

  it.each(["{", "[1]", '[{"workflow":"order","version":"x"}]', "null"])(
    "A7 a worker whose handles are %s is listed, named and can be fenced",
    async (handles) => {
      const store = await open();
      for (const id of ["w1", "w2"]) await store.register(newWorker(id));
      await store.commit({ worker: "w1", runs: [creation("r", { claimed: true })] });
      sql(`update workers set handles = '${handles}' where id = 'w1'`);
      const workers = await store.workers();
      expect(workers.map(({ id, handles }) => [id, handles.length])).toEqual([
        ["w1", 0],
        ["w2", 1],
      ]);
      expect((await store.inspect()).faults).toEqual([expect.stringMatching(/worker w1 is damaged.*Restart/)]);
      expect(await store.fence({ workers: ["w1"] })).toEqual({ moved: [], released: 1 });
    },
  );

  it.each(["{", "7", '["x", 1]'])("A7 purging goes on past a finished run whose tags are %s", async (tags) => {
    const store = await open();
    await store.register(newWorker("w1"));
    const runs = ["a", "b"].map((run) => creation(run, { claimed: true, tags: ["t"] }));
    await store.commit({ worker: "w1", runs: [...runs, creation("c", { tags: ["t"] })] });
    await store.commit({ worker: "w1", runs: ["a", "b"].map((run) => ending(run, 1)) });
    sql(`update runs set tags = '${tags}' where id = 'a'`);
    expect((await store.inspect()).faults).toEqual([expect.stringContaining("row of run a is damaged")]);
    expect(await store.purge({ succeededBefore: 9e15, failedBefore: 0, limit: 9 })).toBe(2);
    expect((await store.runs({ tag: "t", limit: 9 })).map(({ id }) => id)).toEqual(["c"]);
    const db = loadDriver().open(file);
    expect(db.prepare("select count(*) as n from tags").get()).toMatchObject({ n: 1 });
    db.close();
  });

  it("an entry that is missing in the middle still leaves the head where it is", async () => {
    const store = await open();
    await store.register(newWorker("w1"));
    await store.commit({ worker: "w1", runs: [{ ...creation("r", { claimed: true }) }] });
    const entry = (seq: number) => ({ seq, at: 1, type: "note" as const, key: null, data: null, hash: "h" });
    await store.commit({ worker: "w1", runs: [{ run: "r", head: 1, entries: [entry(1), entry(2)] }] });
    await store.close();
    sql("delete from journal where seq = 1");
    const again = await open();
    const taken = await again.take("w1", "r");
    expect([taken?.head, taken?.journal.map(({ seq }) => seq)]).toEqual([3, [0, 2]]);
  });
});

describe("orphans", () => {
  it("I10 a run whose owner has no row is found and adopted", async () => {
    const store = await open();
    await store.register(newWorker("w1"));
    await store.commit({ worker: "w1", runs: [creation("r", { claimed: true }), creation("free")] });
    sql("delete from workers");
    expect(await store.orphans()).toEqual([{ run: "r", state: "running", why: "its owner is gone" }]);
    expect(await store.adopt(["r", "free"])).toBe(1);
    expect(await store.orphans()).toEqual([]);
  });

  it("I10 B8 a late alarm is found among more sleeping runs than are looked at in one go", async () => {
    const store = await open();
    const count = 45_000;
    sql(`insert into runs (id, workflow, version, line, patch, state, trace_id, tags, priority, created_at, head, head_hash, wake_at,
        claims, claimed_head, codec)
      with recursive number (i) as (select 1 union all select i + 1 from number where i < ${count})
      select 'r' || i, 'order', '1.0.0', '1.0', 0, 'waiting', 't', '[]', 0, 0, 1, 'h', 1000, 0, 1, 'json' from number;
      insert into waits select n, 'timer:t', 'timer', 't', case when n in (1, 20000, 20001, ${count}) then 999 else 1000 end, null from runs`);
    expect((await store.orphans()).map(({ run }) => run)).toEqual(["r1", "r20000", "r20001", `r${count}`]);
  });
});

describe("backup", () => {
  it("is a whole store of its own, without what came after", async () => {
    const store = await open();
    await store.commit({ worker: null, runs: [creation("before")] });
    const copy = join(folder, "copies", "copy.db");
    await store.backup?.(copy);
    await store.commit({ worker: null, runs: [creation("after")] });
    const restored = await open({}, copy);
    expect((await restored.runs({ limit: 9 })).map(({ id }) => id)).toEqual(["before"]);
    expect((await restored.inspect()).faults).toEqual([]);
    expect((await store.runs({ limit: 9 })).length).toBe(2);
  });

  it("never writes over a file, and leaves none behind when it fails", async () => {
    const store = await open();
    const copy = join(folder, "copy.db");
    writeFileSync(copy, "precious");
    await expect(store.backup?.(copy)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("exists already"),
    });
    expect(readFileSync(copy, "utf8")).toBe("precious");
    mkdirSync(join(folder, "x.db.unfinished"), { recursive: true });
    await expect(store.backup?.(join(folder, "x.db"))).rejects.toThrow();
    expect(() => readFileSync(join(folder, "x.db"))).toThrow(/ENOENT/);
  });
});
