import { describe, expect, it, onTestFinished } from "vitest";
import type { OrphanRow, Store } from "../core/store.ts";
import { workflow } from "../core/workflow.ts";
import { memoryStore } from "../stores/memory/memory-store.ts";
import { processIdentity } from "../worker/process-identity.ts";
import { doctor } from "./doctor.ts";
import { Pawl } from "./pawl.ts";
import { examineWorkers } from "./worker-health.ts";

const echo = workflow("echo", (ctx, value: number) => ctx.step("echo", () => value));

async function storeWithRuns(count: number): Promise<Store> {
  const store = memoryStore();
  const pawl = await Pawl.open(store, { workflows: [echo], handleSignals: false });
  for (let i = 0; i < count; i++) await pawl.run(echo, i, { id: `run-${i}` });
  await pawl.close();
  return store;
}

describe("doctor", () => {
  it("checks every journal and tells how far it is", async () => {
    const told: number[] = [];
    const diagnosis = await doctor(await storeWithRuns(3), { progress: ({ runs }) => told.push(runs) });
    expect(diagnosis).toMatchObject({
      isHealthy: true,
      isComplete: true,
      journals: { runs: 3, entries: 12, faults: [], isComplete: true },
    });
    expect(told).toEqual([1, 2, 3]);
  });

  it("stops at its bounds and says so", async () => {
    const store = await storeWithRuns(3);
    expect((await doctor(store, { maxRuns: 2 })).journals).toMatchObject({ runs: 2, isComplete: false });
    expect((await doctor(store, { maxEntries: 1 })).journals).toMatchObject({ runs: 1, isComplete: false });
  });

  it("P35 finds an end of a journal that was replaced by another one with checksums of its own", async () => {
    const store = await storeWithRuns(1);
    const rows = async () =>
      (await store.runs({ limit: 1 })).map((row) => ({ ...row, headHash: "what was acknowledged" }));
    const replaced: Store = { ...store, runs: rows };
    expect((await doctor(replaced)).findings).toMatchObject([
      { about: "journals", message: expect.stringContaining("the end of the journal was replaced") },
    ]);
  });

  it("I10 tells of orphans", async () => {
    const orphan: OrphanRow = { run: "run-0", state: "waiting", why: "nothing will wake it" };
    const store: Store = { ...(await storeWithRuns(1)), orphans: async () => [orphan] };
    expect((await doctor(store)).findings).toMatchObject([
      {
        severity: "fault",
        about: "orphans",
        message: expect.stringContaining("Run run-0 is waiting and nothing will wake it."),
      },
    ]);
  });

  it("passes on what the store finds itself", async () => {
    const store = await storeWithRuns(0);
    const broken: Store = {
      ...store,
      inspect: async () => ({ ...(await store.inspect()), faults: ["Page 3 is damaged."] }),
    };
    expect(await doctor(broken)).toMatchObject({
      isHealthy: false,
      findings: [{ severity: "fault", about: "store", message: "Page 3 is damaged." }],
    });
  });
});

describe("the health of workers", () => {
  const mine = processIdentity();
  const row = {
    id: "w",
    name: "w",
    leaseMs: 15_000,
    process: mine,
    handles: [],
    startedAt: 0,
    leaseLeftMs: 9000,
  };
  const healthOf = async (change: object) => {
    const store: Store = { ...memoryStore(), workers: async () => [{ ...row, ...change }] };
    return (await examineWorkers(store))[0]?.health;
  };

  it("P27 a process of this machine is judged by itself, any other one by its lease", async () => {
    expect(await healthOf({})).toBe("live");
    expect(await healthOf({ leaseLeftMs: 4999 })).toBe("late");
    expect(await healthOf({ leaseLeftMs: -1 })).toBe("expired");
    expect(await healthOf({ process: { ...mine, pid: 2 ** 22 + 1 } })).toBe("dead");
    expect(await healthOf({ process: { ...mine, pid: 2 ** 22 + 1, boot: "another machine" } })).toBe("live");
    expect(await healthOf({ process: { ...mine, pid: 2 ** 22 + 1, boot: "another machine" }, leaseLeftMs: -1 })).toBe(
      "expired",
    );
  });

  it("P32 runs are counted for people who look, not for every worker that looks for the dead", async () => {
    const store = memoryStore();
    const asked: string[] = [];
    const noted =
      <T>(what: string, ask: () => Promise<T>) =>
      () => {
        asked.push(what);
        return ask();
      };
    const counting: Store = {
      ...store,
      workers: noted("workers", store.workers),
      owners: noted("owners", store.owners),
    };
    const pawl = await Pawl.open(counting, { workflows: [workflow("w", () => {})], handleSignals: false });
    onTestFinished(() => pawl.close());
    expect(asked).toEqual(["workers"]);
    await store.register({ ...row, process: { ...mine, pid: 2 ** 22 + 1 } });
    expect(await pawl.workers()).toMatchObject([{ runs: 0 }, { runs: 0, health: "dead" }]);
    expect(asked).toEqual(["workers", "workers", "owners"]);
  });

  it("says how long a worker has been silent", async () => {
    const store = memoryStore();
    onTestFinished(() => store.close());
    const silent: Store = {
      ...store,
      workers: async () => [{ ...row, leaseLeftMs: -5000 }],
      owners: async () => [{ worker: "w", runs: 2 }],
    };
    expect((await doctor(silent)).findings).toMatchObject([
      {
        severity: "warning",
        message: expect.stringMatching(/has not been heard of for 20 s\. Its 2 runs will be taken over/),
      },
    ]);
  });
});
