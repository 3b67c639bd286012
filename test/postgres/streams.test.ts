// What streams ask of PostgreSQL: no wait for the disk, for themselves alone, and a word to those who listen.
import { expect, inject, it, onTestFinished } from "vitest";
import type { Hint, Store } from "../../src/core/store.ts";
import { loadDriver } from "../../src/stores/postgres/driver.ts";
import { postgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { apply, creation, ending, newWorker } from "../../src/testing/store-cases/case.ts";

const CHUNK = { run: "r1", start: "a", n: 0, data: '"x"' };
let schemas = 0;

function newSchema(): string {
  const schema = `streams_${process.pid}_${++schemas}`;
  onTestFinished(async () => {
    const client = (await loadDriver()).client({ connectionString: inject("postgresUrl") });
    await client.connect();
    await client.query({ text: `drop schema if exists ${schema} cascade` });
    await client.end();
  });
  return schema;
}

async function openStore(schema: string): Promise<Store> {
  const store = postgresStore(inject("postgresUrl"), { schema });
  await store.open();
  onTestFinished(() => store.close());
  return store;
}

it("SM2 chunks do not wait for the disk, and nothing else is hurried by that", async () => {
  const schema = newSchema();
  const store = await openStore(schema);
  const client = (await loadDriver()).client({ connectionString: inject("postgresUrl") });
  await client.connect();
  // Says, in a table of its own, how the transaction of each new chunk is committed.
  await client.query({
    text: `create table ${schema}.seen (how text);
      create function ${schema}.see() returns trigger language plpgsql as $$
      begin insert into ${schema}.seen values (current_setting('synchronous_commit')); return null; end $$;
      create trigger see after insert on ${schema}.chunks for each statement execute function ${schema}.see();`,
  });
  await store.register(newWorker("w1"));
  await apply(store, creation("r1", { claimed: true }));
  await store.emit([CHUNK]);
  const { rows } = await client.query({ text: `select how from ${schema}.seen` });
  await client.end();
  expect(rows).toEqual([{ how: "off" }]);
  // At once, each goes to a connection that is not busy: the one that the chunks went through is among them.
  const reports = await Promise.all(Array.from({ length: 8 }, () => store.inspect()));
  expect(reports.flatMap(({ settings, faults }) => [settings["synchronous_commit"], ...faults])).toEqual(
    reports.map(() => "on"),
  );
});

it("I12 whoever reads in another process is told which run has new chunks, and nobody is sent to look for work", async () => {
  const schema = newSchema();
  const [store, other] = [await openStore(schema), await openStore(schema)];
  await store.register(newWorker("w1"));
  await apply(store, creation("r1", { claimed: true }));
  let tell: (hint: Hint) => void = () => {};
  const heard = new Promise<Hint>((resolve) => {
    tell = resolve;
  });
  const listening = new Promise<void>((resolve) => {
    // The first thing that it says is that it listens.
    other.hints((hint) => (hint.runs === null ? resolve() : tell(hint)));
  });
  await listening;
  await store.emit([CHUNK]);
  expect(await heard).toEqual({ isWork: false, runs: ["r1"] });
});

it("C-20 no chunk outlives its run, whichever release deletes it", async () => {
  const schema = newSchema();
  const store = await openStore(schema);
  await store.register(newWorker("w1"));
  await apply(store, creation("r1", { claimed: true }), creation("r2", { claimed: true }));
  await store.emit(["r1", "r2"].map((run) => ({ ...CHUNK, run })));
  await apply(store, ending("r1", 1));
  const client = (await loadDriver()).client({ connectionString: inject("postgresUrl") });
  await client.connect();
  const count = async () =>
    Number((await client.query({ text: `select count(*) from ${schema}.chunks` })).rows[0]?.["count"]);
  expect(await count()).toBe(2);
  // The function that was there before there were chunks.
  await client.query({ text: `select ${schema}.purge_1(9e15, 9e15, 9, null)` });
  expect(await count()).toBe(1);
  await client.end();
});
