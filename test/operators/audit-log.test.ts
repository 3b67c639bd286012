// The audit log cannot be changed without being found out, whatever is done to the place where it is kept.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, inject, it } from "vitest";
import { checkAudit } from "../../src/client/audit.ts";
import type { Store } from "../../src/core/store.ts";
import { fileStore } from "../../src/stores/file/file-store.ts";
import { loadDriver as loadPg } from "../../src/stores/postgres/driver.ts";
import { postgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { loadDriver } from "../../src/stores/sqlite/driver.ts";
import { sqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";

const folder = mkdtempSync(join(tmpdir(), "pawl-audit-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Change = "edit" | "delete" | "cut" | "swap";

/** A store with five records, and ways to get at them behind its back. */
interface Place {
  readonly store: Store;
  tamper(change: Change): void | Promise<void>;
}

const SQL: Readonly<Record<Change, string>> = {
  edit: "update audits set who = 'eve' where n = 3",
  delete: "delete from audits where n = 3",
  cut: "delete from audits where n > 3",
  swap: "update audits set hash = (select hash from audits where n = 4) where n = 3",
};

let places = 0;

const PLACES: Readonly<Record<string, () => Promise<Place>>> = {
  async SQLite() {
    const file = join(folder, `${++places}.db`);
    const tamper = (change: Change) => {
      const db = loadDriver().open(file);
      db.exec(SQL[change]);
      db.close();
    };
    return { store: sqliteStore(file, { durability: "process" }), tamper };
  },
  async file() {
    const path = join(folder, `${++places}`);
    const log = join(path, "operators", "audit.jsonl");
    const tamper = (change: Change) => {
      const lines = readFileSync(log, "utf8").trimEnd().split("\n");
      if (change === "edit") lines[2] = String(lines[2]).replace('"ada"', '"eve"');
      if (change === "delete") lines.splice(2, 1);
      if (change === "cut") lines.splice(3);
      if (change === "swap") lines[2] = String(lines[2]).replace(/"hash":"\w+"/, '"hash":"0"');
      writeFileSync(log, `${lines.join("\n")}\n`);
    };
    return { store: fileStore(path, { durability: "process" }), tamper };
  },
  async PostgreSQL() {
    const url = inject("postgresUrl");
    const schema = `${inject("postgresSchemas")}audit_${process.pid}_${++places}`;
    const tamper = async (change: Change) => {
      const client = (await loadPg()).client({ connectionString: url });
      await client.connect();
      await client.query({ text: `set search_path = ${schema}; ${SQL[change]}` });
      await client.end();
    };
    return { store: postgresStore(url, { schema }), tamper };
  },
};

const FAULTS: Readonly<Record<Change, object>> = {
  edit: { n: 3, what: "edited" },
  delete: { n: 3, what: "missing" },
  cut: { n: 4, what: "missing" },
  swap: { n: 3, what: "edited" },
};

describe.each(Object.entries(PLACES))("the audit log on %s", (_, open) => {
  it("Q15 Q20 AU1 AU2 a record that was edited, taken away, or cut off at the end is found and named", async () => {
    for (const change of ["edit", "delete", "cut", "swap"] as const) {
      const { store, tamper } = await open();
      await store.open();
      const entry = {
        who: "ada",
        action: "run.cancel",
        from: null,
        outcome: "done",
        payload: null,
        detail: null,
      } as const;
      for (let i = 1; i <= 5; i++) await store.record({ ...entry, subject: `r${i}` });
      expect(await checkAudit(store)).toEqual({ records: 5, fault: null });
      await tamper(change);
      expect(await checkAudit(store)).toMatchObject({ fault: FAULTS[change] });
      // What is recorded later does not hide it.
      await store.record({ ...entry, subject: "r6" });
      expect(await checkAudit(store)).toMatchObject({ fault: FAULTS[change] });
      await store.close();
    }
  });
});
