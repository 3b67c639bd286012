import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { manualClock } from "../src/base/clock.ts";
import { postgresStore } from "../src/stores/postgres/postgres-store.ts";
import { type OpenedStore, storeCases } from "../src/testing/store-cases.ts";
import { openPostgres, type PostgresServer } from "./postgres.ts";

let server: PostgresServer;
let schemas = 0;
const cleanUps: (() => void | Promise<void>)[] = [];
beforeAll(async () => { server = await openPostgres({settings:{log_min_messages:"error"}}); }, 60_000);
afterAll(() => server.stop());
afterEach(async () => { for (const c of cleanUps.splice(0).reverse()) await c(); });
async function open(): Promise<OpenedStore> {
  const clocks = { clock: manualClock(), leaseClock: manualClock() };
  const store = postgresStore(server.url, { ...clocks, schema: `case_${++schemas}` });
  await store.open();
  cleanUps.push(() => store.close());
  return { store, ...clocks };
}
describe("PostgreSQL store", () => { for (const one of storeCases.filter((c) => !c.isForOneMachine)) it(one.name, () => one.run(open)); });
