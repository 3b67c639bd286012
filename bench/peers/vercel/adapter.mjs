// Vercel Workflow, self-hosted: its standalone bundles behind an HTTP server in this process, its PostgreSQL world, a database of its own.
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath, pathToFileURL } from "node:url";
import pg from "pg";

const HERE = fileURLToPath(new URL("./", import.meta.url));
// The directives in workflows/ are compiled once, in a folder that git ignores.
const WORKSHOP = fileURLToPath(new URL("../../../.cache/bench-vercel/", import.meta.url));
const BUNDLES = pathToFileURL(`${WORKSHOP}.well-known/workflow/v1/`);
const CONCURRENCY = 50;
const LOOK_MS = 5;

export async function open({ place, body }) {
  const last = new Map();
  globalThis.benchBody = async (input, index) => {
    const value = await body(input, index);
    if (index === input.steps - 1) last.get(input.run)?.();
    return value;
  };
  build();
  process.chdir(WORKSHOP); // The world's package is looked for from there.
  await createDatabase(place);
  const server = await serve();
  Object.assign(process.env, {
    PORT: String(server.address().port),
    WORKFLOW_TARGET_WORLD: "@workflow/world-postgres",
    WORKFLOW_POSTGRES_URL: databaseUrl(place),
    WORKFLOW_POSTGRES_WORKER_CONCURRENCY: String(CONCURRENCY),
    WORKFLOW_POSTGRES_MAX_POOL_SIZE: String(CONCURRENCY + 2),
  });
  const { start, getRun } = await import("workflow/api");
  const { getWorld } = await import("workflow/runtime");
  const world = getWorld();
  await world.start();
  const begin = async (name, input) =>
    (await start({ workflowId: `workflow//./workflows/bench//${name}` }, [input])).runId;
  // A run's own `returnValue` looks once a second. The row is read here as soon as the last step has run, and then every few milliseconds.
  const result = async (id) => {
    for (;;) {
      const status = await getRun(id).status;
      if (status === "completed") return getRun(id).returnValue;
      if (status === "failed" || status === "cancelled") throw new Error(`run ${id} is ${status}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  };
  return {
    async run(input) {
      const end = new Promise((resolve) => last.set(input.run, resolve));
      const id = await begin("steps", input);
      await end;
      last.delete(input.run);
      return result(id);
    },
    start: begin,
    result,
    close: async () => world.close?.(),
  };
}

function build() {
  if (existsSync(new URL("./flow.js", BUNDLES))) return;
  mkdirSync(WORKSHOP, { recursive: true });
  writeFileSync(`${WORKSHOP}package.json`, '{ "private": true }\n');
  cpSync(`${HERE}workflows`, `${WORKSHOP}workflows`, { recursive: true });
  if (!existsSync(`${WORKSHOP}node_modules`)) symlinkSync(`${HERE}node_modules`, `${WORKSHOP}node_modules`);
  run("node_modules/workflow/bin/run.js", ["build"]);
}

function run(script, args, environment = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
    cwd: WORKSHOP,
    env: { ...process.env, ...environment },
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${script} ended with ${status}: ${stdout}${stderr}`);
}

async function serve() {
  const routes = new Map();
  const server = createServer(async (request, response) => {
    const name = /^\/\.well-known\/workflow\/v1\/(flow|step)/.exec(request.url)?.[1];
    if (name === undefined) return response.writeHead(404).end();
    if (!routes.has(name)) routes.set(name, import(new URL(`./${name}.js`, BUNDLES)));
    const { POST } = await routes.get(name);
    const chunks = await request.toArray();
    const answer = await POST(
      new Request(`http://localhost${request.url}`, {
        method: "POST",
        headers: new Headers(Object.entries(request.headers).map(([key, value]) => [key, String(value)])),
        body: Buffer.concat(chunks),
      }),
    );
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(Buffer.from(await answer.arrayBuffer()));
  });
  server.listen(0);
  await once(server, "listening");
  return server;
}

// Its tables have fixed schemas, so that each place needs a database.
function databaseUrl({ url, schema }) {
  const own = new URL(url);
  own.pathname = `/${schema}`;
  return own.href;
}

async function createDatabase(place) {
  const exists = await query(place, `select 1 from pg_database where datname = '${place.schema}'`);
  if (exists.rowCount > 0) return;
  await query(place, `create database "${place.schema}"`);
  run("node_modules/@workflow/world-postgres/bin/setup.js", [], { WORKFLOW_POSTGRES_URL: databaseUrl(place) });
}

export async function drop(place) {
  await query(place, `drop database if exists "${place.schema}" with (force)`);
}

async function query({ url }, text) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const answer = await client.query(text);
  await client.end();
  return answer;
}
