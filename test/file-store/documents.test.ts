// What a document of the file store holds, and what is refused by name.
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checksumOf } from "../../src/stores/file/canonical.ts";
import { apply, claimIds, creation, entry, signal } from "../../src/testing/store-cases/case.ts";
import { afterKill, type Document, documentOf, edit, fileOf, newFolder, working } from "./harness.ts";

describe("a document", () => {
  it("F-1 S0-2 S0-38 is there as soon as the run is, readable fields first, with the journal and a checksum", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1", { key: "JIRA-1" }));
    const text = readFileSync(fileOf(path, "r1"), "utf8");
    const document = JSON.parse(text) as Document;
    expect(document).toMatchObject({
      workflow_id: "r1",
      workflow: "order",
      workflow_version: "1.0.0",
      started_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/),
      phases: {},
    });
    const keys = Object.keys(document);
    expect(keys.slice(0, 3)).toEqual(["workflow_id", "workflow", "workflow_version"]);
    expect(keys.slice(-2)).toEqual(["engine", "checksum"]);
    expect(document.checksum).toBe(checksumOf(document));
    expect(text).toMatch(/^ {6}\{"seq":0,"at":1000,"type":"run.started".*\}$/m);
    expect(readdirSync(join(path, "runs", "r1"))).toEqual(["state.json"]);
  });

  it("S0-16 alone is enough: copied to another directory, its run goes on there with all that belongs to it", async () => {
    const path = newFolder();
    const store = await working(path);
    const keys = [{ space: "s", key: "k", digest: "d" }];
    const counters = [{ key: "slots", by: 2, max: 3, held: true }];
    const state = [{ key: "a", data: Uint8Array.from([1, 2, 255]) }];
    await apply(store, { ...creation("r1", { claimed: true }), keys, counters, state });
    await store.deliver(signal("r1", "m1", { data: ' {"b":1, "a":2}' }));
    const other = newFolder();
    mkdirSync(join(other, "runs"), { recursive: true });
    cpSync(join(path, "runs", "r1"), join(other, "runs", "r1"), { recursive: true });
    const second = await working(other);
    expect(await claimIds(second)).toEqual(["r1"]);
    expect(await second.key("s", "k")).toEqual({ run: "r1", digest: "d" });
    expect(await second.counters("")).toEqual([{ key: "slots", value: 2 }]);
    expect(await second.state("r1")).toEqual(state);
    expect((await second.inbox("r1"))[0]).toMatchObject({ id: "m1", data: ' {"b":1, "a":2}' });
    expect(await second.journal("r1")).toEqual(await store.journal("r1"));
  });

  it("is written also if its journal cannot be read, or its values are sealed by a codec of one's own", async () => {
    const path = newFolder();
    const store = await working(path);
    const broken = { ...creation("r1"), entries: [entry(0, "run.started", { data: "{ no JSON" })] };
    await apply(store, broken, creation("r2", { codec: "secret" }));
    for (const run of ["r1", "r2"])
      expect(documentOf(path, run)).toMatchObject({ workflow_id: run, workflow: "order", phases: {} });
    const second = await afterKill(store, path);
    expect((await second.inspect()).faults).toEqual([]);
    expect((await second.journal("r1"))[0]?.data).toBe("{ no JSON");
  });

  it("T-20 shuffled keys and other spaces change nothing", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1"));
    const reversed = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(reversed);
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, inner]) => [key, reversed(inner)]),
      );
    };
    await store.close();
    writeFileSync(fileOf(path, "r1"), JSON.stringify(reversed(documentOf(path, "r1")), null, 7));
    const second = await working(path);
    expect((await second.inspect()).faults).toEqual([]);
    expect(await claimIds(second)).toEqual(["r1"]);
  });

  const mandatory = [
    ..."workflow_id workflow workflow_version started_at updated_at status phase phases engine checksum".split(" "),
    ..."engine.row engine.journal engine.inbox engine.row.state engine.row.id engine.format".split(" "),
  ];

  it.each(mandatory)("S0-3 E-3 without %s it is refused by name", async (field) => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1"), creation("r2"));
    await store.close();
    edit(path, "r1", (document) => {
      const names = field.split(".");
      const last = names.pop() as string;
      delete names.reduce((value, name) => value[name] as Record<string, unknown>, document as Record<string, unknown>)[
        last
      ];
    });
    const second = await working(path);
    await expect(second.run("r1")).rejects.toMatchObject({
      code: "invalid_state_document",
      fields: { path: field, found: "missing", run: "r1" },
    });
    expect(await claimIds(second)).toEqual(["r2"]);
  });

  it.each([
    ["status", "finished", "pending, in_progress, done, failed"],
    ["engine.row.state", "sleeping", "accepted, running"],
    ["engine.journal[0].seq", 7, "0"],
    ["engine.row.tags", "a", "a list"],
    ["engine.format", 2, "1"],
  ])("E-3 a wrong %s is refused with the values that are allowed", async (field, value, allowed) => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1"));
    await store.close();
    edit(path, "r1", (document) => {
      const names = field.replace("[0]", ".0").split(".");
      const last = names.pop() as string;
      (
        names.reduce((at, name) => (at as Record<string, unknown>)[name], document as unknown) as Record<
          string,
          unknown
        >
      )[last] = value;
    });
    const found = (await (await working(path)).run("r1").catch((error: unknown) => error)) as {
      readonly fields: Record<string, string>;
      readonly message: string;
    };
    expect(found.fields).toMatchObject({ path: field, allowed: expect.stringContaining(allowed) });
    expect(found.message).toContain(allowed);
  });

  it("has a folder of its own, whatever its id: case, accents, devices and length", async () => {
    const path = newFolder();
    const store = await working(path);
    const ids = ["a", "A", "é", "e\u0301", "con", "nul.txt", "x".repeat(200), "x".repeat(201), "a.", "ä b", "~"];
    await apply(store, ...ids.map((id) => creation(id)));
    const names = readdirSync(join(path, "runs"));
    expect(new Set(names.map((name) => name.normalize("NFC").toLowerCase())).size).toBe(ids.length);
    for (const name of names)
      expect(name).toMatch(/^[a-z0-9-][a-z0-9._-]{0,79}(~[0-9a-f]{32})?$|^~?[a-z0-9-]*~[0-9a-f]{32}$/);
    const second = await afterKill(store, path);
    expect((await second.runs({ limit: 99 })).map(({ id }) => id)).toEqual([...ids].reverse());
  });
});
