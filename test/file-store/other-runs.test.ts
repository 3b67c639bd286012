// What a run has for others in the file store: outboxes, and kills between two documents.
import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { RunCommit } from "../../src/core/store.ts";
import type { FileStore } from "../../src/stores/file/file-store.ts";
import {
  appending,
  apply,
  cancel,
  claimIds,
  creation,
  ending,
  entry,
  newRun,
  rowOf,
  signal,
  suspending,
} from "../../src/testing/store-cases/case.ts";
import { afterKill, clock, documentOf, faults, fileOf, newFolder, open, working } from "./harness.ts";

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
