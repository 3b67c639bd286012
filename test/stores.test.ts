// Every store keeps every promise of the port.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, it } from "vitest";
import { manualClock } from "../src/base/clock.ts";
import type { Store } from "../src/core/store.ts";
import { fileStore } from "../src/stores/file/file-store.ts";
import { memoryStore } from "../src/stores/memory/memory-store.ts";
import { sqliteStore } from "../src/stores/sqlite/sqlite-store.ts";
import { type OpenedStore, storeCases } from "../src/testing/store-cases.ts";
import { emptyPostgresStore } from "./postgres-schemas.ts";

type Clocks = Pick<OpenedStore, "clock" | "leaseClock">;

const cleanUps: (() => void | Promise<void>)[] = [];

const stores: Readonly<Record<string, (clocks: Clocks) => Store | Promise<Store>>> = {
  memory: (clocks) => memoryStore(clocks),
  SQLite(clocks) {
    const folder = mkdtempSync(join(tmpdir(), "pawl-store-"));
    cleanUps.push(() => rmSync(folder, { recursive: true, force: true }));
    return sqliteStore(join(folder, "pawl.db"), { ...clocks, durability: "process" });
  },
  file(clocks) {
    const folder = mkdtempSync(join(tmpdir(), "pawl-store-"));
    cleanUps.push(() => rmSync(folder, { recursive: true, force: true }));
    return fileStore(join(folder, "state"), { ...clocks, durability: "process" });
  },
  async PostgreSQL(clocks) {
    const { store, leave } = await emptyPostgresStore(clocks);
    cleanUps.push(leave);
    return store;
  },
};

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function open(create: (clocks: Clocks) => Store | Promise<Store>): Promise<OpenedStore> {
  const clocks = { clock: manualClock(), leaseClock: manualClock() };
  const store = await create(clocks);
  await store.open();
  cleanUps.push(() => store.close());
  return { store, ...clocks };
}

describe.each(Object.entries(stores))("%s store", (name, create) => {
  const cases = storeCases.filter(({ isForOneMachine }) => name !== "PostgreSQL" || isForOneMachine !== true);
  for (const one of cases) it(one.name, () => one.run(() => open(create)));
});
