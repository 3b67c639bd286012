import { describe, expect, it } from "vitest";
import { memoryStore } from "../stores/memory/memory-store.ts";
import { type CommitFault, type FaultPlan, type FaultStore, faultStore } from "./fault-store.ts";
import { appending, creation, newWorker } from "./store-cases/case.ts";

async function openStore(plan: FaultPlan): Promise<FaultStore> {
  const store = faultStore(memoryStore(), plan);
  await store.open();
  await store.register(newWorker("w1"));
  await store.commit({ worker: "w1", runs: [creation("r", { claimed: true })] });
  return store;
}

const second = { worker: "w1", runs: [appending("r", 1)] };
const length = async (store: FaultStore) => (await store.journal("r")).length;

/** Settles what a promise does until everything that is ready has run: an answer that has not come by then never comes. */
async function settled(promise: Promise<unknown>): Promise<"answered" | "silent"> {
  const silence = new Promise<"silent">((resolve) => setImmediate(() => resolve("silent")));
  return Promise.race([promise.then(() => "answered" as const), silence]);
}

describe("fault store", () => {
  it("passes everything through without a plan, and records it", async () => {
    const store = await openStore({});
    expect(await store.commit(second)).toEqual([{ run: "r", kind: "applied" }]);
    expect(store.commits.map(({ number, fault, verdicts }) => [number, fault, verdicts?.length])).toEqual([
      [1, null, 1],
      [2, null, 1],
    ]);
    expect(store.commits[1]?.commit).toBe(second);
  });

  it("fails before applying, and only at the planned commit", async () => {
    const store = await openStore({ commits: { 2: "fail" } });
    await expect(store.commit(second)).rejects.toMatchObject({ code: "storage_unavailable" });
    expect(await length(store)).toBe(1);
    expect(await store.commit(second)).toEqual([{ run: "r", kind: "applied" }]);
  });

  it("applies and loses the answer", async () => {
    const store = await openStore({ commits: { 2: "lose-answer" } });
    await expect(store.commit(second)).rejects.toMatchObject({ code: "unknown_outcome" });
    expect(await length(store)).toBe(2);
    expect(store.commits[1]?.verdicts).toEqual([{ run: "r", kind: "applied" }]);
  });

  it.each<[CommitFault, number, number]>([
    ["hang", 2, 0],
    ["kill-before", 1, 1],
    ["kill-after", 2, 1],
  ])("%s never answers", async (fault, applied, kills) => {
    let killed = 0;
    const store = await openStore({ commits: { 2: fault }, kill: () => void killed++ });
    expect(await settled(store.commit(second))).toBe("silent");
    expect([await length(store), killed]).toEqual([applied, kills]);
  });
});
