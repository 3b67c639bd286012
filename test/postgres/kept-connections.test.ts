// The connections that tests use again (postgres-connections.ts): whoever gets one sees nothing of whoever had it before.
import { expect, inject, it } from "vitest";
import { loadDriver, type PgClient } from "../../src/stores/postgres/driver.ts";
import { keptAddress } from "../postgres-connections.ts";

let names = 0;

/** Opens connections of one name, one after the other. */
async function address(): Promise<() => Promise<PgClient>> {
  const connectionString = await keptAddress(inject("postgresUrl"), `kept_${process.pid}_${++names}`);
  const driver = await loadDriver();
  return async () => {
    const client = driver.client({ connectionString, pipeline: true });
    await client.connect();
    return client;
  };
}

async function processOf(client: PgClient): Promise<unknown> {
  return (await client.query({ text: "select pg_backend_pid() as pid" })).rows[0]?.["pid"];
}

it("KC1 a connection that was left is given to the next one, once", async () => {
  const open = await address();
  const first = await open();
  const process = await processOf(first);
  await first.end();
  const [second, third] = [await open(), await open()];
  expect(await processOf(second)).toBe(process);
  expect(await processOf(third)).not.toBe(process);
  await expect(first.query({ text: "select 1" })).rejects.toThrow("was left");
  await Promise.all([first.end(), second.end(), third.end()]);
});

it.each([
  ["in a transaction", (client: PgClient) => client.query({ text: "begin" })],
  [
    "with a statement under way",
    async (client: PgClient) => void client.query({ text: "select pg_sleep(0.1)" }).catch(() => {}),
  ],
  [
    "after it was cut",
    (client: PgClient) => client.query({ text: "select pg_terminate_backend(pg_backend_pid())" }).catch(() => {}),
  ],
])("KC1 a connection that was left %s is given to nobody", async (_, use) => {
  const open = await address();
  const first = await open();
  first.on("error", () => {});
  const process = await processOf(first);
  await use(first);
  await first.end().catch(() => {});
  const second = await open();
  expect(await processOf(second)).not.toBe(process);
  await second.end();
});

it("KC2 it listens to nothing, and has no settings, locks or tables of whoever had it before", async () => {
  const open = await address();
  const first = await open();
  const heard: unknown[] = [];
  first.on("notification", (message) => void heard.push(message));
  for (const text of [
    "listen kept",
    "set work_mem = '7MB'",
    "select pg_advisory_lock(4711)",
    "create temp table mine ()",
  ])
    await first.query({ text });
  await first.end();
  const second = await open();
  await second.query({ text: "notify kept" });
  const { rows } = await second.query({
    text: `select current_setting('work_mem') <> '7MB' as work_mem, to_regclass('mine') is null as tables,
      (select count(*) from pg_listening_channels()) = 0 as channels,
      not exists (select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks`,
  });
  expect(rows).toEqual([{ work_mem: true, tables: true, channels: true, locks: true }]);
  expect(heard).toEqual([]);
  await second.end();
});

it("KC3 an address that was not made for it has connections of its own", async () => {
  const driver = await loadDriver();
  await address();
  const pids = new Set<unknown>();
  for (let i = 0; i < 2; i++) {
    const client = driver.client({ connectionString: inject("postgresUrl") });
    await client.connect();
    pids.add(await processOf(client));
    await client.end();
  }
  expect(pids.size).toBe(2);
});
