// What becomes of documents that somebody has edited, or that are damaged.
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { apply, claimIds, creation, newWorker, rowOf, signal, suspending } from "../../src/testing/store-cases/case.ts";
import { afterKill, chainedRun, clock, documentOf, edit, fileOf, newFolder, open, working } from "./harness.ts";

describe("documents that are not as they should be", () => {
  it("C-23 E-22 a raw edit holds the run, explained, until somebody accepts it and says why", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, chainedRun("r1", 3), creation("r2"));
    await store.close();
    edit(path, "r1", (document) => {
      document["status"] = "done";
      (document.engine["row"] as Record<string, unknown>)["priority"] = 5;
    });
    const second = await working(path);
    expect(await claimIds(second)).toEqual(["r2"]);
    expect(await second.take("w1", "r1")).toBeNull();
    await expect(second.deliver(signal("r1", "m"))).rejects.toMatchObject({ code: "invalid_state_document" });
    expect((await rowOf(second, "r1")).state).toBe("parked");
    const [wait] = await second.waits({ run: "r1", kind: "decision" });
    expect(wait?.detail).toContain("pawl state accept r1 --reason");
    const { faults: found } = await second.inspect({ quick: true });
    expect(found).toEqual([expect.stringContaining("pawl state accept r1 --reason")]);
    expect(await second.orphans()).toEqual([]);
    const [held] = await second.heldDocuments();
    expect(held).toMatchObject({ run: "r1", edits: ["status"], document: { status: "done" } });
    await expect(second.accept("r1", { by: "ada", reason: " " })).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await second.accept("r1", { by: "ada", reason: "was done by hand" })).toMatchObject({ run: "r1" });
    expect(documentOf(path, "r1").engine["accepted"]).toEqual([
      { at: clock.now(), by: "ada", reason: "was done by hand" },
    ]);
    expect(await rowOf(second, "r1")).toMatchObject({ state: "accepted", priority: 5 });
    expect(await claimIds(second)).toEqual(["r1"]);
    await expect(second.accept("r1", { by: "ada", reason: "again" })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });

  it("E-22 D-8 an edited journal cannot be accepted: the entry is named", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, chainedRun("r1", 3));
    await store.close();
    edit(path, "r1", (document) => {
      (document.engine["journal"] as Record<string, unknown>[])[1]!["key"] = "other";
    });
    const second = await working(path);
    await expect(second.accept("r1", { by: "ada", reason: "x" })).rejects.toMatchObject({
      code: "corrupted_journal",
      fields: { path: "engine.journal[1]" },
    });
    expect(await claimIds(second)).toEqual([]);
  });

  it("C-1 D-8 F-11 one that cannot be read is copied to quarantine with the reason; all others go on", async () => {
    const path = newFolder();
    const store = await working(path);
    const keys = [{ space: "s", key: "k", digest: "d" }];
    await apply(store, { ...creation("r1"), keys }, creation("r2"));
    await store.close();
    const torn = readFileSync(fileOf(path, "r1"), "utf8").slice(0, -40);
    writeFileSync(fileOf(path, "r1"), torn);
    const second = await working(path);
    const [copy = "", reason = ""] = readdirSync(join(path, "quarantine")).sort();
    expect(readFileSync(join(path, "quarantine", copy), "utf8")).toBe(torn);
    expect(readFileSync(join(path, "quarantine", reason), "utf8")).toContain(fileOf(path, "r1"));
    expect(readFileSync(fileOf(path, "r1"), "utf8")).toBe(torn);
    expect(await claimIds(second)).toEqual(["r2"]);
    await expect(second.run("r1")).rejects.toMatchObject({ code: "invalid_state_document", fields: { run: "r1" } });
    expect((await second.inspect()).faults).toEqual([expect.stringContaining(fileOf(path, "r1"))]);
    // Nothing takes its place.
    expect(await second.commit({ worker: "w1", runs: [creation("r1")] })).toMatchObject([
      { kind: "failed", error: { code: "invalid_state_document" } },
    ]);
    const third = await afterKill(second, path);
    expect(readdirSync(join(path, "quarantine"))).toHaveLength(2);
    expect((await third.runs({ limit: 9 })).map(({ id }) => id)).toEqual(["r2"]);
  });

  it("C-1 whoever waits for a run that cannot be read is no orphan, its mail stays, and both go on when it is mended", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(
      store,
      { ...creation("c"), keys: [{ space: "s", key: "k", digest: "d" }] },
      creation("a", { claimed: true }),
    );
    await store.close();
    const good = readFileSync(fileOf(path, "c"), "utf8");
    edit(path, "c", (document) => {
      delete document.engine["row"];
    });
    const second = await working(path);
    await claimIds(second, { limit: 1 });
    const waits = [{ open: { key: "call:c", kind: "child" as const, name: "c", due: null, detail: null } }];
    await apply(second, { ...suspending("a", 1), waits, messages: [signal("c", "m1")] });
    expect(await second.orphans()).toEqual([]);
    expect(await second.key("s", "k")).toEqual({ run: "c", digest: "d" });
    const reader = await open(path);
    await expect(reader.deliver(signal("c", "m2"))).rejects.toMatchObject({ code: "invalid_state_document" });
    await second.close();
    writeFileSync(fileOf(path, "c"), good);
    const third = await working(path);
    expect((await third.inbox("c")).map(({ id }) => id)).toEqual(["m1"]);
  });

  it("F-11 a damaged store.json is kept aside and told of, and all runs go on; one of a later version is refused", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1"));
    await store.close();
    writeFileSync(join(path, "store.json"), "{}");
    const second = await working(path);
    expect(await claimIds(second)).toEqual(["r1"]);
    expect((await second.inspect()).faults).toEqual([expect.stringContaining("store.json")]);
    expect((await second.inspect()).settings).toMatchObject({ quarantined: 1 });
    await second.close();
    writeFileSync(join(path, "store.json"), '{"format": 2}');
    const third = await open(path);
    await expect(third.register(newWorker("w1"))).rejects.toMatchObject({ fields: { path: "format", found: "2" } });
  });

  it("a document in another run's folder is refused: it would be there twice", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1"));
    await store.close();
    cpSync(join(path, "runs", "r1"), join(path, "runs", "copy"), { recursive: true });
    const second = await working(path);
    expect((await second.runs({ limit: 9 })).map(({ id }) => id)).toEqual(["r1"]);
    await expect(second.run("copy")).rejects.toMatchObject({ fields: { path: "engine.row.id", found: '"r1"' } });
  });

  it("C-23 a byte order mark and other line ends, as some editors leave them, are no edit", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, chainedRun("r1", 3));
    await store.close();
    writeFileSync(fileOf(path, "r1"), `\uFEFF${readFileSync(fileOf(path, "r1"), "utf8").replaceAll("\n", "\r\n")}`);
    const second = await working(path);
    expect(await second.heldDocuments()).toEqual([]);
    expect(await claimIds(second)).toEqual(["r1"]);
  });

  it("C-23 a name that somebody has written a second time is not passed over: the run is held, and the name told", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, chainedRun("r1", 3));
    await store.close();
    const text = readFileSync(fileOf(path, "r1"), "utf8");
    // The last one counts for whoever parses it: every value is as it was.
    writeFileSync(fileOf(path, "r1"), text.replace('"workflow_id"', '"status": "done",\n  "workflow_id"'));
    const second = await working(path);
    expect(await claimIds(second)).toEqual([]);
    await expect(second.run("r1")).rejects.toMatchObject({
      code: "invalid_state_document",
      fields: { path: "status" },
    });
    await second.rebuild("r1", { by: "ada", reason: "a slip" });
    expect(await claimIds(second)).toEqual(["r1"]);
  });

  it("C-1 D-8 one that the system does not give holds its run alone: it is listed, and so is one that is no JSON", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, ...["r1", "r2", "r3", "r4"].map((run) => chainedRun(run, 2)));
    await store.close();
    rmSync(fileOf(path, "r1"));
    mkdirSync(fileOf(path, "r1"));
    rmSync(fileOf(path, "r2"));
    symlinkSync("state.json", fileOf(path, "r2"));
    writeFileSync(fileOf(path, "r3"), "");
    const second = await working(path);
    expect(await claimIds(second)).toEqual(["r4"]);
    const held = await second.heldDocuments();
    expect(held.map(({ run, kind, row }) => [run, kind, row])).toEqual([
      ["r1", "damaged", null],
      ["r2", "damaged", null],
      ["r3", "damaged", null],
    ]);
    expect(held.map(({ message }) => /EISDIR|ELOOP|JSON/.exec(message)?.[0])).toEqual(["EISDIR", "ELOOP", "JSON"]);
    for (const { run } of held)
      await expect(second.rebuild(run, { by: "ada", reason: "x" })).rejects.toMatchObject({
        code: "invalid_state_document",
      });
    expect((await second.inspect()).faults).toHaveLength(3);
  });

  it("F-1 a run whose folder is a link to another disk is there as any other", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, chainedRun("r1", 2));
    await store.close();
    renameSync(join(path, "runs", "r1"), `${path}-elsewhere`);
    symlinkSync(`${path}-elsewhere`, join(path, "runs", "r1"));
    const second = await working(path);
    expect(await claimIds(second)).toEqual(["r1"]);
    expect(JSON.parse(readFileSync(join(`${path}-elsewhere`, "state.json"), "utf8"))).toMatchObject({
      engine: { row: { owner: "w1" } },
    });
  });

  it("E-22 D-8 a row that has ended where its journal has not is neither accepted nor written again", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, chainedRun("r1", 3));
    await store.close();
    edit(path, "r1", ({ engine }) => Object.assign(engine["row"] as object, { state: "succeeded" }));
    const second = await working(path);
    expect((await rowOf(second, "r1")).state).toBe("parked");
    const who = { by: "ada", reason: "x" };
    const refusal = { code: "corrupted_journal", fields: { path: "engine.row.state" } };
    await expect(second.accept("r1", who)).rejects.toMatchObject(refusal);
    await expect(second.rebuild("r1", who)).rejects.toMatchObject(refusal);
  });
});
