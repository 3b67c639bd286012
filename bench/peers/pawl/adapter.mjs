// Pawl on SQLite or PostgreSQL, from this repository's dist.
import { join } from "node:path";
import { Pawl, postgresStore, workflow } from "pawl";
import pg from "pg";

export async function open({ place, body }) {
  const steps = workflow("steps", async (ctx, input) => {
    let sum = 0;
    for (let i = 0; i < input.steps; i++) sum += await ctx.step("add", () => body(input, i));
    return sum;
  });
  const sleeper = workflow({ name: "sleeper", deadline: "90 days" }, async (ctx, input) => {
    await ctx.step("add", () => body(input, 0));
    await ctx.sleep("30 days");
  });
  const workflows = { steps, sleeper };
  const { url, schema, folder } = place;
  const store = url === undefined ? join(folder, "pawl.db") : postgresStore(url, { schema });
  const pawl = await Pawl.open(store, {
    workflows: Object.values(workflows),
    concurrency: 4096,
  });
  return {
    run: (input) => pawl.run(steps, input),
    start: async (name, input) => (await pawl.start(workflows[name], input)).id,
    result: (id) => pawl.get(id).result(),
    close: () => pawl.close(),
  };
}

export async function drop({ url, schema }) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`drop schema if exists "${schema}" cascade`);
  await client.end();
}
