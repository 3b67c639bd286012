// What only the file store promises: documents, outboxes, the lock, letters, and what becomes of files that are not as they should be.

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { manualClock } from "../src/base/clock.ts";
import { checksum } from "../src/core/checksum.ts";
import type { StoredEntry } from "../src/core/journal.ts";
import type { RunCommit } from "../src/core/store.ts";
import { checksumOf } from "../src/stores/file/canonical.ts";
import type { FaultPoint } from "../src/stores/file/disk.ts";
import { type FileStore, type FileStoreOptions, fileStore } from "../src/stores/file/file-store.ts";
import {
  appending,
  apply,
  cancel,
  claimIds,
  creation,
  ending,
  entry,
  newRun,
  newWorker,
  rowOf,
  signal,
  suspending,
} from "../src/testing/store-cases/case.ts";
import { nodeHost } from "../src/worker/node-host.ts";

const folders: string[] = [];
const stores: FileStore[] = [];

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "pawl-file-"));
  folders.push(folder);
  return join(folder, "state");
}

const clock = manualClock();

async function open(path: string, options: FileStoreOptions = {}): Promise<FileStore> {
  const store = fileStore(path, { clock, durability: "process", ...options });
  await store.open();
  stores.push(store);
  return store;
}

/** Opened to write, with the worker "w1". */
async function working(path: string, options: FileStoreOptions = {}): Promise<FileStore> {
  const store = await open(path, options);
  await store.register(newWorker("w1"));
  return store;
}

/** As another process would find it: the first one was killed. */
async function afterKill(store: FileStore, path: string): Promise<FileStore> {
  await store.close();
  return working(path);
}

function fileOf(path: string, run: string): string {
  return join(path, "runs", run, "state.json");
}

type Document = Record<string, unknown> & { engine: Record<string, unknown>; checksum: string };

function documentOf(path: string, run: string): Document {
  return JSON.parse(readFileSync(fileOf(path, run), "utf8")) as Document;
}

function edit(path: string, run: string, change: (document: Document) => void, isSigned = false): void {
  const document = documentOf(path, run);
  change(document);
  if (isSigned) document.checksum = checksumOf(document);
  writeFileSync(fileOf(path, run), JSON.stringify(document));
}

/** An error of the system at a point, while it is switched on. */
function faults() {
  const fault = {
    points: [] as string[],
    code: null as string | null,
    when: (_point: FaultPoint, _path: string): boolean => true,
    hook(point: FaultPoint, path: string): void {
      fault.points.push(point);
      if (fault.code !== null && fault.when(point, path))
        throw Object.assign(new Error(`${fault.code}: injected`), { code: fault.code, path });
    },
  };
  return fault;
}

/** Entries whose checksums are in order. */
function chained(run: string, count: number): StoredEntry[] {
  const entries: StoredEntry[] = [];
  let previous = run;
  for (let seq = 0; seq < count; seq++) {
    const unsigned = entry(seq, seq === 0 ? "run.started" : "step.started", { key: seq === 0 ? null : `s${seq}` });
    const one = { ...unsigned, hash: checksum(nodeHost, previous, unsigned) };
    entries.push(one);
    previous = one.hash;
  }
  return entries;
}

function chainedRun(run: string, count: number): RunCommit {
  return { run, head: 0, entries: chained(run, count), create: newRun() };
}

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

describe("other runs", () => {
  const child = (run: string) => ({ run, create: newRun(), entry: entry(0, "run.started") });

  /** A commit that is cut off at the n-th rename, as by a kill: what was renamed before stays. */
  async function cutAt(path: string, n: number, parts: readonly RunCommit[]): Promise<FileStore>;
  async function cutAt(path: string, n: number, parts: readonly RunCommit[], mayPass: true): Promise<FileStore | null>;
  async function cutAt(
    path: string,
    n: number,
    parts: readonly RunCommit[],
    mayPass = false,
  ): Promise<FileStore | null> {
    const fault = faults();
    const store = await working(path, { fault: fault.hook });
    await apply(store, ...["a", "b"].map((run) => creation(run, { claimed: true })));
    fault.code = "EIO";
    let renames = 0;
    fault.when = (point) => point === "rename" && ++renames >= n;
    const outcome = await store.commit({ worker: "w1", runs: parts }).catch((error: unknown) => error);
    if (mayPass && Array.isArray(outcome)) return null;
    expect(outcome).toMatchObject({ code: "unknown_outcome" });
    fault.code = null;
    return afterKill(store, path);
  }

  it("P31 what a run has for others survives a kill between two documents, and reaches them once", async () => {
    const path = newFolder();
    const part = { ...appending("a", 1), children: [child("c")], messages: [signal("b", "m1"), cancel("b")] };
    const store = await cutAt(path, 2, [part]);
    expect((await rowOf(store, "c")).state).toBe("accepted");
    expect((await store.inbox("b")).map(({ id }) => id)).toEqual(["m1"]);
    expect(await rowOf(store, "b")).toMatchObject({ cancel: "changed my mind", wake: 2 });
    expect(documentOf(path, "a").engine["outbox"]).toEqual([]);
    const again = await afterKill(store, path);
    expect((await again.inbox("b")).map(({ id }) => id)).toEqual(["m1"]);
    expect((await rowOf(again, "b")).wake).toBe(2);
  });

  it("P31 a reader counts what is in an outbox as there: nobody is an orphan meanwhile", async () => {
    const path = newFolder();
    const fault = faults();
    const store = await working(path, { fault: fault.hook });
    await apply(store, creation("a", { claimed: true }));
    fault.code = "EIO";
    let renames = 0;
    fault.when = (point) => point === "rename" && ++renames === 2;
    const waits = [{ open: { key: "call:c", kind: "child" as const, name: "c", due: null, detail: null } }];
    const part = { ...suspending("a", 1), waits, children: [child("c")] };
    await expect(store.commit({ worker: "w1", runs: [part] })).rejects.toMatchObject({ code: "unknown_outcome" });
    expect(existsSync(fileOf(path, "c"))).toBe(false);
    const reader = await open(path);
    expect(await reader.orphans()).toEqual([]);
    expect((await reader.runs({ limit: 9 })).map(({ id }) => id)).toEqual(["c", "a"]);
  });

  it("P31 two runs that tell each other in one commit: neither has what the other has not written", async () => {
    const parts = [
      { ...appending("a", 1), messages: [signal("b", "from a")] },
      { ...appending("b", 1), messages: [signal("a", "from b")] },
    ];
    const store = await cutAt(newFolder(), 2, parts);
    expect([(await store.journal("a")).length, (await store.journal("b")).length]).toEqual([2, 1]);
    expect((await store.inbox("a")).map(({ id }) => id)).toEqual([]);
    expect((await store.inbox("b")).map(({ id }) => id)).toEqual(["from a"]);
    const late = await cutAt(newFolder(), 3, parts);
    expect((await late.inbox("a")).map(({ id }) => id)).toEqual(["from b"]);
    expect((await late.inbox("b")).map(({ id }) => id)).toEqual(["from a"]);
  });

  it("P16 P31 a commit of several runs that is cut off at any rename and offered again comes to the same", async () => {
    const parts = [
      { ...appending("a", 1), children: [child("c"), child("d")], messages: [signal("b", "m1")] },
      {
        ...appending("b", 1),
        messages: [signal("a", "m2"), signal("c", "m3")],
        keys: [{ space: "s", key: "k", digest: "d" }],
      },
      { ...appending("a", 2), counters: [{ key: "n", by: 2, max: 3, held: true }], messages: [cancel("b")] },
    ];
    const fold = async (store: FileStore) => ({
      heads: await Promise.all(["a", "b", "c", "d"].map(async (run) => (await store.journal(run)).length)),
      mail: await Promise.all(["a", "b", "c"].map(async (run) => (await store.inbox(run)).map(({ id }) => id).sort())),
      cancel: (await rowOf(store, "b")).cancel,
      key: await store.key("s", "k"),
      counters: await store.counters(""),
    });
    const whole = await working(newFolder());
    await apply(whole, creation("a", { claimed: true }), creation("b", { claimed: true }));
    await apply(whole, ...parts);
    const expected = await fold(whole);
    let cuts = 0;
    for (; ; cuts++) {
      const path = newFolder();
      const store = await cutAt(path, cuts + 2, parts, true);
      if (store === null) break;
      await claimIds(store);
      for (const part of parts) {
        const head = (await store.journal(part.run)).length;
        if (part.head >= head) await apply(store, part);
      }
      expect(await fold(store), `cut ${cuts}`).toEqual(expected);
    }
    expect(cuts).toBe(6);
  });

  it("P31 an old outbox does not bring back a child that was purged", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("a", { claimed: true }));
    await apply(store, {
      ...suspending("a", 1),
      row: { ...suspending("a", 1).row, wakeAt: 9e15 },
      children: [child("c")],
    });
    expect(documentOf(path, "a").engine["outbox"]).toHaveLength(1);
    await claimIds(store);
    await apply(store, ending("c", 1));
    expect(await store.purge({ succeededBefore: 9e15, failedBefore: 9e15, limit: 9 })).toBe(1);
    expect(await (await afterKill(store, path)).run("c")).toBeNull();
  });

  it("P28 claims of a process that was killed are released, and counted", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("a", { claimed: true }), creation("b", { claimed: true }));
    await apply(store, { ...appending("b", 1), entries: [entry(1, "step.completed")] });
    const second = await afterKill(store, path);
    expect(await rowOf(second, "a")).toMatchObject({ owner: null, readyAt: clock.now(), claims: 1 });
    expect(await rowOf(second, "b")).toMatchObject({ owner: null, claims: 0 });
    expect(await claimIds(second)).toEqual(["a", "b"]);
  });

  it("a key that has moved is not taken back by a kill in between", async () => {
    const path = newFolder();
    const fault = faults();
    const store = await working(path, { fault: fault.hook });
    const keys = [{ space: "s", key: "k", digest: "d" }];
    await apply(store, { ...creation("a", { claimed: true }), keys });
    fault.code = "EIO";
    let renames = 0;
    fault.when = (point) => point === "rename" && ++renames === 2;
    const moving = { ...creation("b"), keys: keys.map((key) => ({ ...key, from: "a" })) };
    await expect(store.commit({ worker: "w1", runs: [moving] })).rejects.toMatchObject({ code: "unknown_outcome" });
    fault.code = null;
    expect(documentOf(path, "a").engine["keys"]).toHaveLength(1);
    const second = await afterKill(store, path);
    expect(await second.key("s", "k")).toEqual({ run: "b", digest: "d" });
    expect(documentOf(path, "a").engine["keys"]).toEqual([]);
  });
});

describe("one owner", () => {
  it("S1-67 C-19 F-13 a second writer is refused with who has the directory, and changes nothing", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1"));
    const other = await open(path);
    const owner = { pid: process.pid, host: hostname(), since: new Date(clock.now()).toISOString(), number: 1 };
    for (const attempt of [
      () => other.register(newWorker("w2")),
      () => other.commit({ worker: null, runs: [creation("r2")] }),
      () => other.purge({ succeededBefore: 0, failedBefore: 0, limit: 1 }),
      () => other.backup?.(`${path}-copy`),
    ]) {
      const error = (await Promise.resolve(attempt()).catch((thrown: unknown) => thrown)) as Error;
      expect(error).toMatchObject({ code: "storage_unavailable", fields: { owner } });
      expect(error.message).toContain(`process ${process.pid} on ${hostname()}`);
    }
    expect(readdirSync(join(path, "runs"))).toEqual(["r1"]);
    expect(JSON.parse(readFileSync(join(path, "lease.json"), "utf8"))).toMatchObject({
      number: 1,
      workers: [{ id: "w1" }],
    });
    await store.close();
    await other.register(newWorker("w2"));
    expect(JSON.parse(readFileSync(join(path, "lease.json"), "utf8"))).toMatchObject({
      number: 2,
      workers: [{ id: "w2" }],
    });
  });

  it("S1-67 anybody may read, afresh each time, and sees who is at work", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1", { claimed: true }));
    const reader = await open(path);
    expect((await rowOf(reader, "r1")).owner).toBe("w1");
    expect(await reader.workers()).toMatchObject([{ id: "w1", leaseLeftMs: 15_000 }]);
    await apply(store, appending("r1", 1));
    expect((await reader.journal("r1")).length).toBe(2);
    expect(await reader.owners()).toEqual([{ worker: "w1", runs: 1 }]);
    await apply(store, ending("r1", 2));
    expect((await rowOf(reader, "r1")).state).toBe("succeeded");
  });

  it("looking creates nothing", async () => {
    const path = newFolder();
    const reader = await open(path);
    expect([await reader.runs({ limit: 9 }), await reader.workers(), await reader.run("r")]).toEqual([[], [], null]);
    expect((await reader.inspect()).settings).toMatchObject({ runs: 0, mail: 0 });
    expect(existsSync(path)).toBe(false);
  });

  it("a letter of another process is answered truly, and reaches the run once", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1", { claimed: true }), creation("over", { claimed: true }));
    await apply(store, ending("over", 1));
    const other = await open(path);
    const bytes = { data: Uint8Array.from([0, 200]) };
    expect(await other.deliver(signal("r1", "m1", bytes))).toBe("delivered");
    expect(await other.deliver(signal("r1", "m1"))).toBe("duplicate");
    expect(await other.deliver(signal("over", "m2"))).toBe("ended");
    expect(await other.deliver(signal("nobody", "m3"))).toBe("missing");
    expect(readdirSync(join(path, "mail"))).toHaveLength(1);
    expect((await other.inbox("r1")).map(({ id }) => id)).toEqual(["m1"]);
    const [letter = ""] = readdirSync(join(path, "mail"));
    const saved = readFileSync(join(path, "mail", letter), "utf8");
    expect((await store.owned("w1", { news: true }))[0]?.inbox).toMatchObject([{ id: "m1", ...bytes }]);
    expect(readdirSync(join(path, "mail"))).toEqual([]);
    // As if it had been killed before the letter was gone.
    writeFileSync(join(path, "mail", letter), saved);
    expect((await store.owned("w1", { news: true }))[0]).toMatchObject({ wake: 1, inbox: [{ id: "m1" }] });
    expect(await other.deliver(signal("r1", "m1"))).toBe("duplicate");
  });

  it("P5 P18 a letter that was acknowledged comes before whatever the owner does next", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1", { claimed: true }), creation("r2", { claimed: true }));
    const other = await open(path);
    await other.deliver(signal("r1", "m1"));
    await other.deliver(cancel("r2"));
    const verdicts = await store.commit({
      worker: "w1",
      runs: [
        { ...suspending("r1", 1), ifWake: 0 },
        { ...ending("r2", 1), ifNotCancelled: true },
      ],
    });
    expect(verdicts).toMatchObject([
      { kind: "refused", why: "wake" },
      { kind: "refused", why: "cancel" },
    ]);
  });

  it("a letter that nobody took waits for the next process, and one that cannot be read is kept", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1"));
    const other = await open(path);
    await other.deliver(signal("r1", "m1"));
    writeFileSync(join(path, "mail", "1-bad.json"), '{"at": 1, "message": {"to": 5}}');
    await store.close();
    expect(await other.deliver(signal("r1", "m2"))).toBe("delivered");
    expect((await other.inbox("r1")).map(({ id }) => id)).toEqual(["m1", "m2"]);
    expect(readdirSync(join(path, "mail"))).toEqual([]);
    const reason = readdirSync(join(path, "quarantine")).find((name) => name.endsWith(".txt")) ?? "";
    expect(readFileSync(join(path, "quarantine", reason), "utf8")).toContain("message.to is 5. Allowed: text");
  });

  it("F-13 whoever finds a higher number in the directory has lost it, whatever became of the lock", async () => {
    const path = newFolder();
    const store = await working(path);
    await apply(store, creation("r1", { claimed: true }));
    rmSync(join(path, "lock"));
    const thief = await working(path);
    await expect(store.commit({ worker: "w1", runs: [appending("r1", 1)] })).rejects.toMatchObject({
      code: "storage_unavailable",
      fields: { owner: { number: 2 } },
    });
    expect((await thief.journal("r1")).length).toBe(1);
    expect(await store.heartbeat("w1")).toMatchObject({ alive: false });
  });

  it("a command that has the directory for a moment is waited for, a worker is not", async () => {
    const path = newFolder();
    const command = await open(path);
    await command.commit({ worker: null, runs: [creation("r1")] });
    const worker = await open(path);
    const registered = worker.register(newWorker("w1"));
    await command.close();
    await registered;
    expect(await claimIds(worker)).toEqual(["r1"]);
  });

  it("hints tell of letters", async () => {
    const leaseClock = manualClock();
    const path = newFolder();
    const store = await working(path, { leaseClock });
    await apply(store, creation("r1"));
    let told = 0;
    store.hints(() => void told++);
    await (await open(path)).deliver(signal("r1", "m1"));
    leaseClock.advance(100);
    await Promise.resolve();
    expect(told).toBe(1);
  });

  it("a file, or a folder with other things in it, is no store", async () => {
    const path = newFolder();
    mkdirSync(path);
    writeFileSync(join(path, "notes.txt"), "mine");
    await expect(open(path)).rejects.toMatchObject({ code: "not_a_store" });
    await expect(open(join(path, "notes.txt"))).rejects.toMatchObject({ code: "not_a_store" });
    expect(() => fileStore("")).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });
});

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
});

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
