// Limits while several connections claim at the same time: what a look without a lock would let through.
import { expect, inject, it, onTestFinished } from "vitest";
import type { Handle, Store } from "../../src/core/store.ts";
import { loadDriver } from "../../src/stores/postgres/driver.ts";
import { postgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { creation, ending, newWorker } from "../../src/testing/store-cases/case.ts";

const WORKERS = ["w1", "w2", "w3", "w4"];
const ROUNDS = 15;

async function openStores(): Promise<Store[]> {
  const schema = `limits_${process.pid}`;
  const url = inject("postgresUrl");
  const stores = WORKERS.map(() => postgresStore(url, { schema }));
  for (const store of stores) await store.open();
  onTestFinished(async () => {
    for (const store of stores) await store.close();
    const client = (await loadDriver()).client({ connectionString: url });
    await client.connect();
    await client.query({ text: `drop schema ${schema} cascade` });
    await client.end();
  });
  for (const [i, store] of stores.entries()) await store.register(newWorker(WORKERS[i] as string));
  return stores;
}

it("I18 P24 workers that claim at the same moment get as many runs of a slot and of a rate as there are, together", async () => {
  const stores = await openStores();
  const [store] = stores as [Store];
  const handles: Handle[] = [{ workflow: "order", version: "1.0.0", concurrency: 3, rate: { limit: 5, perMs: 1e9 } }];
  for (let round = 0; round < ROUNDS; round++) {
    const needs = { slot: `order/s${round}`, rate: `order/r${round}` };
    const ids = Array.from({ length: 9 }, (_, i) => `r${round}-${i}`);
    await store.commit({ worker: null, runs: ids.map((id) => creation(id, { needs })) });
    const claimAll = async () => {
      const ask = (one: Store, i: number) =>
        one.claim({ worker: WORKERS[i] as string, handles, limit: 2, suspect: false });
      return (await Promise.all(stores.map(ask))).flat();
    };
    const first = await claimAll();
    expect(first).toHaveLength(3);
    for (const { run, row } of first) await store.commit({ worker: row.owner, runs: [ending(run, 1)] });
    expect(await claimAll()).toHaveLength(2);
    expect(await claimAll()).toEqual([]);
  }
});
