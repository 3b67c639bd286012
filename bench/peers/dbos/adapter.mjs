// DBOS on PostgreSQL. Workflows are started directly, as its documentation does where no queue is needed: they begin at once, in this process.
import { DBOS } from "@dbos-inc/dbos-sdk";
import pg from "pg";

const POOL = 20;

export async function open({ place, body }) {
  const steps = DBOS.registerWorkflow(
    async (input) => {
      let sum = 0;
      for (let i = 0; i < input.steps; i++) sum += await DBOS.runStep(() => body(input, i), { name: "add" });
      return sum;
    },
    { name: "steps", maxRecoveryAttempts: 1000 },
  );
  const sleeper = DBOS.registerWorkflow(
    async (input) => {
      await DBOS.runStep(() => body(input, 0), { name: "add" });
      await DBOS.sleep(30 * 86_400_000);
    },
    { name: "sleeper" },
  );
  const workflows = { steps, sleeper };
  DBOS.setConfig({
    name: "bench",
    systemDatabaseUrl: place.url,
    systemDatabaseSchemaName: place.schema,
    systemDatabasePoolSize: POOL,
    applicationVersion: "1",
    executorID: "local",
    logLevel: "error",
  });
  await DBOS.launch();
  const start = (name, input) => DBOS.startWorkflow(workflows[name])(input);
  return {
    run: async (input) => (await start("steps", input)).getResult(),
    start: async (name, input) => (await start(name, input)).workflowID,
    result: (id) => DBOS.retrieveWorkflow(id).getResult(),
    close: () => DBOS.shutdown(),
  };
}

export async function drop({ url, schema }) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`drop schema if exists "${schema}" cascade`);
  await client.end();
}
