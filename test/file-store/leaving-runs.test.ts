// Runs that leave the file store, copies of it, and its inspection.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { apply, creation, ending } from "../../src/testing/store-cases/case.ts";
import { afterKill, edit, faults, fileOf, newFolder, open, working } from "./harness.ts";

describe("runs that leave", () => {
  const ALL = { succeededBefore: 9e15, failedBefore: 9e15, limit: 9 };

  it("C-20 F-11 a purged run moves to the archive with all that is in its folder, however often its id is used", async () => {
    const path = newFolder();
    const store = await working(path);
    for (const round of [1, 2]) {
      await apply(store, creation("r1", { claimed: true }));
      mkdirSync(join(store.folderOf("r1"), "outputs"));
      writeFileSync(join(store.folderOf("r1"), "outputs", "report.md"), `round ${round}`);
      await apply(store, ending("r1", 1));
      expect(await store.purge(ALL)).toBe(1);
      expect(await store.run("r1")).toBeNull();
    }
    expect(readdirSync(join(path, "archive")).sort()).toEqual(["r1", "r1.2"]);
    expect(readFileSync(join(path, "archive", "r1", "outputs", "report.md"), "utf8")).toBe("round 1");
    expect(JSON.parse(readFileSync(join(path, "archive", "r1.2", "state.json"), "utf8"))).toMatchObject({
      workflow_id: "r1",
    });
    expect(readdirSync(join(path, "runs"))).toEqual([]);
  });

  it("C-20 they are deleted where that is asked for", async () => {
    const path = newFolder();
    const store = await working(path, { onPurge: "delete" });
    await apply(store, creation("r1", { claimed: true }));
    await apply(store, ending("r1", 1));
    expect(await store.purge(ALL)).toBe(1);
    expect([readdirSync(join(path, "runs")), existsSync(join(path, "archive"))]).toEqual([[], false]);
  });

  it("what they have added to counters stays, also if the process dies before they have left", async () => {
    const path = newFolder();
    const fault = faults();
    const store = await working(path, { fault: fault.hook });
    await apply(store, creation("top", { claimed: true }));
    const counters = [
      { key: "spent", by: 3, max: null, held: false, of: "top" },
      { key: "all", by: 2, max: null, held: false },
    ];
    await apply(store, { ...creation("r1", { claimed: true }), counters });
    await apply(store, ending("r1", 1));
    fault.code = "EIO";
    fault.when = (point) => point === "move";
    await expect(store.purge(ALL)).rejects.toMatchObject({ code: "storage_unavailable" });
    fault.code = null;
    const second = await afterKill(store, path);
    const values = [
      { key: "all", value: 2 },
      { key: "of/top/spent", value: 3 },
    ];
    expect(await second.counters("")).toEqual(values);
    expect(readdirSync(join(path, "archive"))).toEqual(["r1"]);
    expect(await (await afterKill(second, path)).counters("")).toEqual(values);
  });

  it("a backup is a store that goes on from there", async () => {
    const path = newFolder();
    const store = await working(path, { durability: "power" });
    await apply(store, creation("r1"), creation("r2", { claimed: true }));
    await store.backup?.(`${path}-copy`);
    await apply(store, ending("r2", 1));
    await expect(store.backup?.(`${path}-copy`)).rejects.toMatchObject({ code: "invalid_argument" });
    const copy = await working(`${path}-copy`);
    expect((await copy.runs({ limit: 9 })).map(({ id, state }) => [id, state])).toEqual([
      ["r2", "running"],
      ["r1", "accepted"],
    ]);
  });

  it("an inspection reads every document again and tells of lock, mail, archive and quarantine", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1"));
    edit(path, "r1", (document) => Object.assign(document, { status: "done" }));
    expect((await store.inspect({ quick: true })).faults).toEqual([]);
    const report = await store.inspect();
    expect(report).toMatchObject({
      store: "file",
      settings: { path, runs: 1, bytes: statSync(fileOf(path, "r1")).size, mail: 0, locked_by: process.pid },
      faults: [expect.stringContaining(fileOf(path, "r1"))],
    });
    renameSync(path, `${path}-moved`);
    expect((await (await open(path)).inspect()).faults).toEqual([]);
  });
});
