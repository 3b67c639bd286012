// Freezes the stores of this release, schema, functions, rows and journals, under test/golden/VERSION: run when a release is cut (I23).
// A golden store is never changed once its release is out. Until then, `npm run freeze -- --again` makes it anew.
import { fork } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { Pawl } from "../dist/index.js";
import { loadDriver } from "../dist/stores/sqlite/driver.js";
import { dumpRows, makeSchema } from "./golden/postgres-dump.mjs";
import { openPostgres } from "./postgres-server.mjs";

const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8"));
const golden = (name) => fileURLToPath(new URL(`../test/golden/${version}/${name}`, import.meta.url));
const SCHEMA = '"pawl"';
// The table that the scene's transactions write to is its user's own.
const LEDGER = "create table golden_ledger (entry text not null)";
const deadline = "36500 days";

if (existsSync(golden("postgres.sql")) && !process.argv.includes("--again")) {
  console.error(`test/golden/${version} is frozen. If ${version} is not released yet: npm run freeze -- --again`);
  process.exit(1);
}
await freezeSqlite();
await freezePostgres();

async function freezeSqlite() {
  const folder = await mkdtemp(join(tmpdir(), "pawl-golden-"));
  const file = join(folder, "store.db");
  await (await Pawl.open(file)).close();
  const db = loadDriver().open(file);
  db.exec(LEDGER);
  db.close();
  await playAndDie(file);
  const pawl = await Pawl.open(file);
  await leaveMail(pawl);
  await writeFile(golden("sqlite.json"), await describeStore(pawl));
  await rm(golden("sqlite.db"), { force: true });
  await pawl.store.backup(golden("sqlite.db"));
  await pawl.close();
  await rm(folder, { recursive: true });
}

async function freezePostgres() {
  const server = await openPostgres();
  const name = `golden_${process.pid}`;
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  const admin = await connect(server.url);
  await admin.query(`create database ${name}`);
  const client = await connect(url.href);
  const schema = [...(await makeSchema(client, SCHEMA)), `${LEDGER};`];
  await client.query(LEDGER);
  await playAndDie(url.href);
  const pawl = await Pawl.open(url.href);
  await leaveMail(pawl);
  await client.query("begin");
  await pawl.start("golden-doubles", 8, { key: "enlisted", version: "1.0.0", deadline, transaction: client });
  await client.query("commit");
  await writeFile(golden("postgres.json"), await describeStore(pawl));
  await pawl.close();
  const rows = [...(await dumpRows(client, SCHEMA)), ...(await dumpRows(client, "public"))];
  await writeFile(golden("postgres.sql"), `${[...schema, ...rows].join("\n")}\n`);
  await client.end();
  await admin.query(`drop database ${name} with (force)`);
  await admin.end();
  await server.stop();
}

async function connect(connectionString) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}

/** The scene's process ends as by a power cut: it hands nothing back. */
async function playAndDie(url) {
  const scene = fork(new URL("golden/scene.mjs", import.meta.url), [url, golden("features.ts")]);
  const died = new Promise((resolve) => scene.once("exit", resolve));
  const ready = await Promise.race([new Promise((resolve) => scene.once("message", () => resolve(true))), died]);
  if (ready !== true) throw new Error(`The scene ended by itself, with ${ready}.`);
  scene.kill("SIGKILL");
  await died;
}

/** What comes while nobody works: mail, a decision, a cancel, and runs that nobody has begun. */
async function leaveMail(pawl) {
  const byKey = new Map((await pawl.list({ limit: 1000 })).runs.map((run) => [run.key, run.id]));
  await pawl.signal(byKey.get("large"), "letter", "x".repeat(10_000), { id: "the-letter" });
  await pawl.resolve(byKey.get("decided"), { choice: "complete", value: "it happened" });
  await pawl.store.deliver({
    to: byKey.get("unheard"),
    id: "cancel",
    kind: "cancel",
    name: "",
    data: "nobody is there",
  });
  await pawl.start("golden-doubles", 4, { key: "ready", version: "1.0.0", deadline });
}

/** What every later release must read from the store. */
async function describeStore(pawl) {
  const { runs } = await pawl.list({ limit: 1000 });
  const lines = [];
  for (const { id, key, workflow, state } of runs) {
    const journal = (await pawl.store.journal(id)).map((entry) => ({ ...entry, data: plain(entry.data) }));
    lines.push(JSON.stringify({ id, key, workflow, state, journal }));
  }
  const facts = { frozenAt: pawl.store.clock.now(), schedules: await pawl.schedules() };
  return `{"facts":${JSON.stringify(facts)},\n"runs":[\n${lines.join(",\n")}\n]}\n`;
}

function plain(data) {
  return data instanceof Uint8Array ? { base64: Buffer.from(data).toString("base64") } : data;
}
