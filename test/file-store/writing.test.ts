// How the file store writes: in which order, and what is left of it when the disk does not.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  appending,
  apply,
  cancel,
  claimIds,
  creation,
  entry,
  newRun,
  newWorker,
  rowOf,
  signal,
} from "../../src/testing/store-cases/case.ts";
import { afterKill, edit, faults, fileOf, newFolder, open, working } from "./harness.ts";

describe("writing", () => {
  it("S0-22 T-14 the content is synced before the rename, the folder after it, a new folder's parent before", async () => {
    const fault = faults();
    const store = await working(newFolder(), { fault: fault.hook });
    fault.points.length = 0;
    await apply(store, creation("r1", { claimed: true }));
    expect(fault.points).toEqual([
      "folder",
      "folder",
      "write",
      "sync",
      "sync-folder",
      "sync-folder",
      "rename",
      "sync-folder",
    ]);
    fault.points.length = 0;
    await apply(store, appending("r1", 1));
    expect(fault.points).toEqual(["write", "sync", "rename", "sync-folder"]);
  });

  it.each(["ENOSPC", "EROFS", "EACCES", "EIO"])(
    "E-27 D-14 ST5 %s changes nothing, in memory or on the disk, and it goes on when that is mended",
    async (code) => {
      const fault = faults();
      const path = newFolder();
      const store = await working(path, { fault: fault.hook });
      await apply(store, creation("r1", { claimed: true }), creation("r2", { claimed: true }));
      const before = [readFileSync(fileOf(path, "r1"), "utf8"), await store.run("r1"), await store.run("r2")];
      fault.code = code;
      let writes = 0;
      fault.when = (point) => point === "write" && ++writes === 3;
      const parts = [
        { ...appending("r1", 1), children: [{ run: "child", create: newRun(), entry: entry(0, "run.started") }] },
        { ...appending("r2", 1), messages: [signal("r1", "m")] },
      ];
      await expect(store.commit({ worker: "w1", runs: parts })).rejects.toMatchObject({
        code: "storage_unavailable",
        fields: { errno: code },
      });
      expect(writes).toBe(3);
      expect([readFileSync(fileOf(path, "r1"), "utf8"), await store.run("r1"), await store.run("r2")]).toEqual(before);
      expect([await store.run("child"), (await store.inbox("r1")).length]).toEqual([null, 0]);
      expect(readdirSync(join(path, "runs")).sort()).toEqual(["r1", "r2"]);
      expect(readdirSync(join(path, "runs", "r1"))).toEqual(["state.json"]);
      fault.code = null;
      await apply(store, ...parts);
      expect([(await store.inbox("r1")).length, (await rowOf(store, "child")).state]).toEqual([1, "accepted"]);
    },
  );

  it("E-27 what a full disk refuses is not in memory either: claims, messages, counters and keys", async () => {
    const fault = faults();
    const store = await working(newFolder(), { fault: fault.hook });
    await apply(store, creation("r1"), creation("r2", { claimed: true }));
    fault.code = "ENOSPC";
    fault.when = (point, file) => point === "write" && file.includes("runs");
    await expect(claimIds(store)).rejects.toMatchObject({ code: "storage_unavailable" });
    await expect(store.deliver(cancel("r1"))).rejects.toMatchObject({ code: "storage_unavailable" });
    const counters = [{ key: "c", by: 1, max: null, held: true }];
    const keys = [{ space: "s", key: "k", digest: "d" }];
    const asked = { worker: "w1", runs: [{ ...appending("r2", 1), counters, keys }] };
    await expect(store.commit(asked)).rejects.toMatchObject({ code: "storage_unavailable" });
    expect(await rowOf(store, "r1")).toMatchObject({ owner: null, claims: 0, cancel: null, wake: 0 });
    expect([await store.counters(""), await store.key("s", "k")]).toEqual([[], null]);
    fault.code = null;
    expect(await claimIds(store)).toEqual(["r1"]);
    expect(await store.commit(asked)).toEqual([{ run: "r2", kind: "applied" }]);
    expect(await store.counters("")).toEqual([{ key: "c", value: 1 }]);
  });

  it("P17 what fails after the first rename is unknown, and what is on the disk then counts", async () => {
    const fault = faults();
    const path = newFolder();
    const store = await working(path, { fault: fault.hook });
    await apply(store, creation("r1", { claimed: true }), creation("r2", { claimed: true }));
    fault.code = "EIO";
    let renames = 0;
    fault.when = (point) => point === "rename" && ++renames === 2;
    const parts = [appending("r1", 1), appending("r2", 1)];
    await expect(store.commit({ worker: "w1", runs: parts })).rejects.toMatchObject({ code: "unknown_outcome" });
    fault.code = null;
    const { moved } = await store.fence({ workers: ["w1"], successor: newWorker("w2") });
    expect(moved.map(({ run, head }) => [run, head])).toEqual([
      ["r1", 2],
      ["r2", 1],
    ]);
  });

  it("F-9 drafts of a process that died are ignored, and gone when the next one works", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1"));
    await store.close();
    writeFileSync(join(path, "runs", "r1", "state.json.77-1.tmp"), "{ half");
    mkdirSync(join(path, "runs", "never"));
    writeFileSync(join(path, "runs", "never", "state.json.77-2.tmp"), "");
    const reader = await open(path);
    expect((await reader.inspect()).settings).toMatchObject({ leftovers: 2 });
    expect((await reader.runs({ limit: 9 })).map(({ id }) => id)).toEqual(["r1"]);
    await reader.close();
    await working(path);
    expect(readdirSync(join(path, "runs"))).toEqual(["r1"]);
    expect(readdirSync(join(path, "runs", "r1"))).toEqual(["state.json"]);
  });

  it("C-23 a document that is edited under a process is kept aside, and the process goes on from what it knows", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1", { claimed: true }));
    edit(path, "r1", (document) => Object.assign(document, { status: "done" }));
    await apply(store, appending("r1", 1));
    const [copy = "", reason = ""] = readdirSync(join(path, "quarantine")).sort();
    expect(JSON.parse(readFileSync(join(path, "quarantine", copy), "utf8"))).toMatchObject({ status: "done" });
    expect(readFileSync(join(path, "quarantine", reason), "utf8")).toContain(`process ${process.pid}`);
    expect((await store.inspect()).settings).toMatchObject({ quarantined: 1 });
    expect((await (await afterKill(store, path)).journal("r1")).length).toBe(2);
  });
});
