import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { apply, creation, ending, newWorker } from "../../testing/store-cases/case.ts";
import type { FaultPoint } from "./connection.ts";
import { type Database, loadDriver } from "./driver.ts";
import { sqliteStore } from "./sqlite-store.ts";

const FULL = 2;
const NORMAL = 1;
const DISK_FULL = 13;
const IO_ERROR = 10;

/** A store that was opened, and what `synchronous` of its connection is. */
async function openStore() {
  const folder = mkdtempSync(join(tmpdir(), "pawl-streams-"));
  const opened: Database[] = [];
  const driver = loadDriver();
  const { open } = driver;
  const spy = vi.spyOn(driver, "open").mockImplementation((path) => {
    const db = open(path);
    opened.push(db);
    return db;
  });
  const atCommit: number[] = [];
  const level = () => Number(opened.at(-1)?.prepare("pragma synchronous").get()?.synchronous);
  const faults: Partial<Record<FaultPoint, number>> = {};
  const fault = (point: FaultPoint) => {
    if (point === "commit") atCommit.push(level());
    const errcode = faults[point];
    delete faults[point];
    if (errcode !== undefined) throw Object.assign(new Error(), { code: "ERR_SQLITE_ERROR", errcode });
  };
  const store = sqliteStore(join(folder, "pawl.db"), { fault });
  onTestFinished(async () => {
    await store.close();
    spy.mockRestore();
    rmSync(folder, { recursive: true, force: true });
  });
  await store.open();
  await store.register(newWorker("w1"));
  await apply(store, creation("r1", { claimed: true }));
  atCommit.length = 0;
  const count = () => Number(opened.at(-1)?.prepare("select count(*) as count from chunks").get()?.count);
  return { store, level, atCommit, faults, count, connections: () => opened.length };
}

it("SM2 chunks are written without a sync, and everything else with one, whatever happens in between", async () => {
  const { store, level, atCommit, faults } = await openStore();
  const chunk = { run: "r1", start: "a", n: 0, data: '"x"' };
  await store.emit([chunk]);
  expect(level()).toBe(FULL);
  for (const point of ["begin", "statement", "before-commit"] as const) {
    faults[point] = DISK_FULL;
    await expect(store.emit([{ ...chunk, n: 1 }])).rejects.toMatchObject({ code: "storage_unavailable" });
    expect(level(), point).toBe(FULL);
  }
  await apply(store, { run: "r1", head: 1, entries: [] });
  expect(atCommit).toEqual([NORMAL, FULL]);
});

it("SM2 ST5 a commit of chunks whose outcome is unknown leaves a connection behind that syncs", async () => {
  const { store, level, faults, connections } = await openStore();
  const chunk = { run: "r1", start: "a", n: 0, data: '"x"' };
  faults["after-commit"] = IO_ERROR;
  await expect(store.emit([chunk])).rejects.toMatchObject({ code: "unknown_outcome" });
  await store.emit([chunk]);
  expect(connections()).toBe(2);
  expect(level()).toBe(FULL);
  expect(await store.chunks("r1", { of: [{ start: "a", n: 0 }], limit: 9 })).toEqual([chunk]);
});

it("C-20 no chunk outlives its run", async () => {
  const { store, count } = await openStore();
  await apply(store, creation("r2", { claimed: true }));
  await store.emit(["r1", "r2"].map((run) => ({ run, start: "a", n: 0, data: '"x"' })));
  await apply(store, ending("r1", 1));
  expect(count()).toBe(2);
  expect(await store.purge({ succeededBefore: 9e15, failedBefore: 9e15, limit: 9 })).toBe(1);
  expect(count()).toBe(1);
});
