// A stored run whose bytes are not what was written: whatever was changed, it is found before anything is made of it, and named.
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { jsonCodec } from "../../src/base/envelope.ts";
import { checkJournal } from "../../src/client/doctor.ts";
import type { StoredEntry } from "../../src/core/journal.ts";
import type { RunRow } from "../../src/core/store.ts";
import { openJournal } from "../../src/core/values.ts";
import { fileStore, Pawl, sqliteStore, workflow } from "../../src/index.ts";
import { readDocument } from "../../src/stores/file/read-document.ts";
import { loadDriver, type SqlValue } from "../../src/stores/sqlite/driver.ts";
import { nodeHost } from "../../src/worker/node-host.ts";
import { withoutColdStart } from "../cold-start.ts";

withoutColdStart("its journals are damaged on purpose");

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const called: string[] = [];

/** Some of everything: input, state, a step, an effect, a note, and a wait that is open. */
const flow = workflow("flow", async (ctx, input: { who: string }) => {
  ctx.set("place", { row: 1 });
  const first = await ctx.step("first", () => {
    called.push("first");
    return `${input.who} é`;
  });
  await ctx.effect("second", { idempotent: true, do: () => void called.push("second") });
  ctx.note("almost");
  const last = await ctx.waitFor("go");
  return [first, last];
});
/** Its end is what others read. */
const short = workflow("short", async (ctx) => ctx.step("only", () => "the true result"));

let folder: string;
let files = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-tampered-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function open(file: string): Promise<Pawl> {
  const store = sqliteStore(file, { durability: "process" });
  const pawl = await Pawl.open(store, { workflows: [flow, short], logger: quiet, handleSignals: false });
  onTestFinished(() => pawl.close({ drain: 1 }));
  return pawl;
}

/** A SQLite file with a run that waits, "r", and one that has ended, "s". */
async function recorded(): Promise<string> {
  const file = join(folder, `${files++}.db`);
  const pawl = await open(file);
  await pawl.start(flow, { who: "ada" }, { id: "r" });
  await pawl.run(short, undefined, { id: "s" });
  await pawl.idle();
  await pawl.close();
  called.length = 0;
  return file;
}

function change(file: string, sql: string, values: readonly SqlValue[] = []): void {
  const db = loadDriver().open(file);
  db.prepare(sql).run(...values);
  db.close();
}

/** The same text with one bit of one byte of it turned over; `null` where that gives no text. */
function flipped(text: string, at: number): string | null {
  const bytes = Buffer.from(text);
  bytes[at] = (bytes[at] as number) ^ 1;
  const other = bytes.toString();
  return Buffer.from(other).equals(bytes) ? other : null;
}

function everyFlip(entry: StoredEntry): StoredEntry[] {
  const texts = (["type", "key", "data", "hash"] as const).flatMap((field) => {
    const text = entry[field];
    if (typeof text !== "string") return [];
    return [...Buffer.from(text).keys()].flatMap((at) => {
      const other = flipped(text, at);
      return other === null ? [] : [{ ...entry, [field]: other } as StoredEntry];
    });
  });
  const bits = [...Array(40).keys()].map((bit) => ({ ...entry, at: entry.at + 2 ** bit }));
  return [...texts, ...bits, { ...entry, key: entry.key === null ? "" : null }, { ...entry, data: null }];
}

describe("a journal", () => {
  it("S4-7 S4-8 E-22 any byte of any field of any entry that is not what was written is found, and its entry named", async () => {
    const pawl = await open(await recorded());
    const row = (await pawl.store.run("r")) as RunRow;
    const journal = await pawl.store.journal("r");
    const read = (stored: readonly StoredEntry[]) => openJournal(nodeHost, jsonCodec, row, stored);
    expect(read(journal).length).toBeGreaterThan(7);
    let flips = 0;
    for (const [seq, entry] of journal.entries()) {
      for (const other of everyFlip(entry)) {
        if (JSON.stringify(other) === JSON.stringify(entry)) continue;
        flips += 1;
        expect(() => read(journal.with(seq, other)), JSON.stringify(other)).toThrow(
          expect.objectContaining({
            code: "corrupted_journal",
            fields: expect.objectContaining({ run: "r", seq }),
          }),
        );
      }
    }
    expect(flips).toBeGreaterThan(500);
  });

  it("S4-7 S4-8 E-22 D-8 in SQLite, a changed column of any row parks its run before a line of it is executed; the doctor names the entry", async () => {
    const file = await recorded();
    const db = loadDriver().open(file);
    const rows = db.prepare("select * from journal where run = (select n from runs where id = 'r')").all() as Record<
      string,
      SqlValue
    >[];
    db.close();
    const columns = ["at", "type", "key", "data", "hash"];
    for (const row of rows.filter((_, index) => index % 3 === 0 || index === rows.length - 1)) {
      for (const column of columns) {
        const was = row[column] as SqlValue;
        if (was === null) continue;
        const value = typeof was === "string" ? (flipped(was, was.length >> 1) ?? "x") : Number(was) + 1;
        const copy = join(folder, `${files++}.db`);
        copyFileSync(file, copy);
        change(copy, `update journal set ${column} = ? where run = ? and seq = ?`, [value, row["run"]!, row["seq"]!]);
        const pawl = await open(copy);
        const about = `${column} of entry ${row["seq"]}`;
        const { fault } = await checkJournal(pawl.store, (await pawl.store.run("r")) as RunRow);
        expect(fault, about).toMatchObject({ run: "r", seq: Number(row["seq"]) });
        await pawl.signal("r", "go");
        await pawl.idle();
        const { parked } = await pawl.get("r").status();
        expect(parked, about).toMatchObject({ reason: "corrupted_journal", detail: { seq: Number(row["seq"]) } });
        expect(called).toEqual([]);
        await pawl.close();
      }
    }
  });

  it("S4-18 P35 a row that is older than its journal, as from another backup, repeats nothing that was finished since", async () => {
    const file = await recorded();
    const hash = "(select hash from journal where run = runs.n and seq = 1)";
    change(file, `update runs set head = 2, head_hash = ${hash} where id = 'r'`);
    change(file, "delete from state where run = (select n from runs where id = 'r')");
    const pawl = await open(file);
    await pawl.signal("r", "go", 1);
    expect(await pawl.get("r").result()).toEqual(["ada é", 1]);
    expect(called).toEqual([]);
  });

  it("S4-8 E-22 the result of a run that has ended is not handed out if its last entry is not what was written", async () => {
    const file = await recorded();
    change(
      file,
      "update journal set data = ? where run = (select n from runs where id = 's') and type = 'run.succeeded'",
      ['"a false result"'],
    );
    const pawl = await open(file);
    const damaged = { code: "corrupted_journal", fields: { run: "s", type: "run.succeeded" } };
    await expect(pawl.get("s").result()).rejects.toMatchObject(damaged);
    await expect(pawl.get("s").status()).rejects.toMatchObject(damaged);
  });

  it("S4-8 E-22 S2-59 nothing that was changed is inherited: a fork ends before it, a retry refuses it", async () => {
    const file = await recorded();
    // run.started 0, state.patched 1, first 2-3
    change(file, "update journal set data = ? where run = (select n from runs where id = 'r') and seq = 3", [
      '"forged"',
    ]);
    const pawl = await open(file);
    await pawl.cancel("r");
    await expect(pawl.fork("r", { at: 4 })).rejects.toMatchObject({ message: expect.stringContaining("from 1 to 3") });
    await expect(pawl.retry("r")).rejects.toMatchObject({ code: "corrupted_journal", fields: { run: "r", seq: 3 } });
    const fork = await pawl.fork("r", { at: "first" });
    await fork.signal("go", 1);
    expect(await fork.result()).toEqual(["ada é", 1]);
    expect(called).toEqual(["first", "second"]);
  });
});

describe("a document", () => {
  it("S4-7 S4-8 T-20 E-22 any byte of it that is not what was written is found, whatever field it is in, and the document named", async () => {
    const path = join(folder, "documents");
    const pawl = await Pawl.open(fileStore(path, { durability: "process" }), {
      workflows: [flow],
      logger: quiet,
      handleSignals: false,
    });
    await pawl.start(flow, { who: "ada" }, { id: "r", key: "k", tags: ["t"] });
    await pawl.idle();
    await pawl.signal("r", "other", { unread: true });
    await pawl.close();
    const file = join(path, "runs", "r", "state.json");
    const bytes = readFileSync(file);
    const before = JSON.stringify(JSON.parse(bytes.toString()));
    const runs = join(folder, "copies");
    mkdirSync(join(runs, "r"), { recursive: true });
    const copy = join(runs, "r", "state.json");
    writeFileSync(copy, bytes);
    expect(readDocument(runs, "r")).toMatchObject({ kind: "sound" });
    // Every third one: all of them take a while.
    const places = [...bytes.keys()].filter((at) => at % 3 === 0);
    const missed = places.filter((at) => {
      const other = Buffer.from(bytes);
      other[at] = (other[at] as number) ^ 1;
      writeFileSync(copy, other);
      const found = readDocument(runs, "r");
      if (found?.kind === "edited") return found.run !== "r" || found.file !== copy;
      return found?.kind !== "damaged" || found.error.fields["run"] !== "r" || found.error.fields["file"] !== copy;
    });
    expect(missed).toEqual([]);
    // What the file says is all that counts: the same value in other words is the same document.
    writeFileSync(copy, before);
    expect(readDocument(runs, "r")).toMatchObject({ kind: "sound" });
  });
});
