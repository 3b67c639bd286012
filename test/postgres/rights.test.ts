import { Pawl, postgresStore, workflow } from "pawl";
import { expect, inject, it, onTestFinished } from "vitest";
import { loadDriver } from "../../src/stores/postgres/driver.ts";

it("P36 an owner of the schema needs no other right", async () => {
  const server = inject("postgresUrl");
  const name = `owner_${process.pid}`;
  const client = (await loadDriver()).client({ connectionString: server });
  await client.connect();
  onTestFinished(async () => {
    await client.query({ text: `drop schema if exists ${name} cascade; drop role if exists ${name}` });
    await client.end();
  });
  await client.query({ text: `create role ${name} login password 'p'; create schema ${name} authorization ${name}` });
  const url = new URL(server);
  url.username = name;
  url.password = "p";
  url.searchParams.set("schema", name);
  const greet = workflow("greet", async (ctx) => ctx.step("greet", () => "hello"));
  const pawl = await Pawl.open(url.href, { workflows: [greet] });
  expect(await pawl.run(greet)).toBe("hello");
  expect(await pawl.store.purge({ succeededBefore: Date.now() + 60_000, failedBefore: 0, limit: 10 })).toBe(1);
  await pawl.close();
});

it("Q9 a name of a schema that could end a text inside a function is refused; any other one works", async () => {
  const server = inject("postgresUrl");
  for (const schema of ["o'neill", 'a"b', "a$$b", "50%s", "a\\b", "a\nb", "a?b", "", "x".repeat(59)])
    expect(() => postgresStore(server, { schema })).toThrow(/^schema is .* Give a name of 1 to 58 bytes/);
  const schema = `Ünser Schema-${process.pid}; --`;
  const pawl = await Pawl.open(postgresStore(server, { schema }));
  const client = (await loadDriver()).client({ connectionString: server });
  await client.connect();
  onTestFinished(async () => {
    await client.query({ text: `drop schema "${schema}" cascade` });
    await client.end();
  });
  expect((await pawl.list()).runs).toEqual([]);
  await pawl.close();
});
