// Entries of one commit share statements, whatever runs they belong to.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RunCommit, Store } from "../../core/store.ts";
import { appending, creation, entry, newWorker } from "../../testing/store-cases/case.ts";
import type { FaultPoint } from "./connection.ts";
import { sqliteStore } from "./sqlite-store.ts";

const RUNS = ["a", "b", "c"] as const;

let folder: string;
let store: Store;
let fault: (point: FaultPoint) => void = () => {};

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "pawl-entries-"));
  fault = () => {};
  store = sqliteStore(join(folder, "pawl.db"), { durability: "process", fault: (point) => fault(point) });
  await store.open();
  await store.register(newWorker("w1"));
  await store.commit({ worker: "w1", runs: RUNS.map((run) => creation(run, { claimed: true })) });
});

afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

/** So many entries, dealt out to the runs as evenly as it goes; each says where it belongs. */
function dealt(count: number): RunCommit[] {
  return RUNS.map((run, i) => {
    const share = Math.floor(count / RUNS.length) + (i < count % RUNS.length ? 1 : 0);
    const entries = Array.from({ length: share }, (_, k) => entry(1 + k, "note", { data: `"${run} ${1 + k}"` }));
    return { run, head: 1, entries };
  }).filter(({ entries }) => entries.length > 0);
}

describe("a commit of several runs", () => {
  it.each([1, 2, 3, 7, 8, 9, 23, 64, 65])("I3 with %i entries is read back whole and in order", async (count) => {
    const parts = dealt(count);
    expect(await store.commit({ worker: "w1", runs: parts })).toEqual(
      parts.map(({ run }) => ({ run, kind: "applied" })),
    );
    for (const { run, entries } of parts) expect((await store.journal(run)).slice(1)).toEqual(entries);
    const counts = await Promise.all(RUNS.map(async (run) => (await store.journal(run)).length - 1));
    expect(counts.reduce((a, b) => a + b)).toBe(count);
  });

  it("I3 entries of one run in two parts, and of a run made in the same commit, keep their order", async () => {
    const runs = [
      appending("a", 1, 5),
      creation("new", { claimed: true }),
      appending("a", 6, 5),
      appending("new", 1, 3),
    ];
    const verdicts = await store.commit({ worker: "w1", runs });
    expect(verdicts.map(({ kind }) => kind)).toEqual(["applied", "applied", "applied", "applied"]);
    const seqs = async (run: string) => (await store.journal(run)).map(({ seq }) => seq);
    expect(await seqs("a")).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(await seqs("new")).toEqual([0, 1, 2, 3]);
  });
});

describe("a part that fails", () => {
  const broken = (seq: number) => entry(seq, "note", { at: Number.NaN });

  it.each([0, 1, 6, 7, 8, 15, 20])("P16 at its entry %i leaves none of its entries behind", async (at) => {
    const bad = Array.from({ length: 21 }, (_, k) => (k === at ? broken(1 + k) : entry(1 + k)));
    const runs = [appending("a", 1, 3), { run: "b", head: 1, entries: bad }, appending("c", 1, 7)];
    const verdicts = await store.commit({ worker: "w1", runs });
    expect(verdicts.map(({ kind }) => kind)).toEqual(["applied", "failed", "applied"]);
    const lengths = await Promise.all(RUNS.map(async (run) => (await store.journal(run)).length));
    expect(lengths).toEqual([4, 1, 8]);
    expect(await store.commit({ worker: "w1", runs: [appending("b", 1, 9)] })).toEqual([{ run: "b", kind: "applied" }]);
    expect((await store.journal("b")).map(({ seq }) => seq)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it("P16 whichever insert meets a full disk, nothing of the commit is there", async () => {
    const parts = dealt(23);
    let failures = 0;
    for (let nth = 1; ; nth++) {
      let left = nth;
      fault = (point) => {
        if (point === "statement" && --left === 0) throw Object.assign(new Error("full"), { errcode: 13 });
      };
      const answer = await store.commit({ worker: "w1", runs: parts }).catch((error) => error);
      if (left > 0) break;
      expect(answer).toMatchObject({ code: "storage_unavailable" });
      failures += 1;
      for (const run of RUNS) expect((await store.journal(run)).length).toBe(1);
    }
    // Twice eight at a time, then four, two and one.
    expect(failures).toBe(5);
    for (const { run, entries } of parts) expect((await store.journal(run)).slice(1)).toEqual(entries);
  });
});
