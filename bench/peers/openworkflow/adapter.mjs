// OpenWorkflow on SQLite or PostgreSQL, client and worker in one process.
import { join } from "node:path";
import { OpenWorkflow } from "openworkflow";
import postgres from "postgres";

const LOOK_MS = 5;

export async function open({ place, body, inFlight }) {
  const backend = await connect(place);
  const engine = new OpenWorkflow({ backend });
  const returned = new Map();
  const steps = engine.defineWorkflow({ name: "steps" }, async ({ input, step }) => {
    let sum = 0;
    for (let i = 0; i < input.steps; i++) sum += await step.run({ name: `add-${i}` }, () => body(input, i));
    returned.get(input.run)?.();
    return sum;
  });
  const sleeper = engine.defineWorkflow({ name: "sleeper" }, async ({ input, step }) => {
    await step.run({ name: "add" }, () => body(input, 0));
    await step.sleep("rest", "30d");
  });
  const workflows = { steps, sleeper };
  const worker = engine.newWorker({ concurrency: inFlight });
  await worker.start();

  // A handle's own `result()` looks once a second. The row is read here as soon as the function has returned, and then every few milliseconds.
  const result = async (id) => {
    for (;;) {
      const { status, output, error } = await backend.getWorkflowRun({ workflowRunId: id });
      if (status === "completed" || status === "succeeded") return output;
      if (status === "failed" || status === "canceled") throw new Error(`run ${id}: ${JSON.stringify(error)}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  };
  return {
    async run(input) {
      const end = new Promise((resolve) => returned.set(input.run, resolve));
      const { workflowRun } = await steps.run(input);
      await end;
      returned.delete(input.run);
      return result(workflowRun.id);
    },
    start: async (name, input) => (await workflows[name].run(input)).workflowRun.id,
    result,
    async close() {
      await worker.stop();
      await backend.stop();
    },
  };
}

async function connect(place) {
  if (place.url === undefined) {
    const { BackendSqlite } = await import("openworkflow/sqlite");
    return BackendSqlite.connect(join(place.folder, "openworkflow.db"));
  }
  const { BackendPostgres } = await import("openworkflow/postgres");
  return BackendPostgres.connect(place.url, { schema: place.schema });
}

export async function drop({ url, schema }) {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql`drop schema if exists ${sql(schema)} cascade`;
  await sql.end();
}
