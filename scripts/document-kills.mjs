// Killed while writing
// A process writes a document of several megabytes again and again in a file store and is killed with SIGKILL somewhere on the way. What it leaves
// must parse, match its checksum, and be the version that was acknowledged last or the one that was being written (S0-22).
//
//   npm run documents                        200 kills of a writer of 5 MB
//   npm run documents -- --kills 10 --megabytes 1 --seed 7
//
// Exit code 1 if a document is lost, damaged, or of another version.

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { seededRandom } from "../dist/base/random.js";
import { fileStore } from "../dist/index.js";
import { readOptions } from "./read-options.mjs";

const RUN = "document";
/** About as long as a write of megabytes takes. */
const MOST_MS = 30;
const options = readOptions(import.meta.url, {
  kills: { type: "string", default: "200" },
  megabytes: { type: "string", default: "5" },
  seed: { type: "string", default: String(Date.now() % 1_000_000) },
  writer: { type: "string" },
});

if (options.writer === undefined) await killWriters();
else await writeForEver(options.writer, Number(options.megabytes));

async function killWriters() {
  const folder = mkdtempSync(join(tmpdir(), "pawl-documents-"));
  const random = seededRandom(options.seed);
  const faults = [];
  const moments = { before: 0, after: 0 };
  let last = 0;
  let leftovers = 0;
  try {
    for (let kill = 1; kill <= Number(options.kills); kill++) {
      const { acknowledged, isPlain } = await killOne(folder, last, random);
      const found = await versionIn(folder);
      leftovers += draftsIn(folder);
      if (!isPlain) faults.push(`kill ${kill}: the writer ended by itself`);
      if (found !== acknowledged && found !== acknowledged + 1)
        faults.push(`kill ${kill}: found ${found}, acknowledged ${acknowledged}`);
      moments[found === acknowledged ? "before" : "after"] += 1;
      last = typeof found === "number" ? found : last;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  for (const fault of faults) console.error(fault);
  const { before, after } = moments;
  console.log(
    JSON.stringify({
      seed: options.seed,
      kills: Number(options.kills),
      before,
      after,
      leftovers,
      faults: faults.length,
    }),
  );
  process.exitCode = faults.length === 0 ? 0 : 1;
}

/** Starts a writer and kills it while it writes; resolves with the last version that it has acknowledged. */
async function killOne(folder, last, random) {
  const args = [fileURLToPath(import.meta.url), "--writer", folder, "--megabytes", options.megabytes];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("close", (_code, signal) => resolve(signal)));
  let acknowledged = last;
  let watcher;
  for await (const line of createInterface({ input: child.stdout })) {
    acknowledged = Number(line);
    if (watcher !== undefined || acknowledged < last + 2) continue;
    // From the moment when a draft appears until a while after it got its name.
    watcher = watch(join(folder, "runs", RUN), (_event, name) => {
      if (name?.endsWith(".tmp")) setTimeout(() => child.kill("SIGKILL"), random.next() * MOST_MS);
    });
  }
  watcher?.close();
  return { acknowledged, isPlain: (await ended) === "SIGKILL" };
}

async function versionIn(folder) {
  try {
    JSON.parse(readFileSync(join(folder, "runs", RUN, "state.json"), "utf8"));
    const store = fileStore(folder);
    await store.open();
    const { faults } = await store.inspect();
    const [row] = await store.state(RUN);
    await store.close();
    return faults.length > 0 ? faults[0] : JSON.parse(row.data).version;
  } catch (error) {
    return String(error);
  }
}

function draftsIn(folder) {
  return readdirSync(join(folder, "runs", RUN)).filter((name) => name.endsWith(".tmp")).length;
}

async function writeForEver(folder, megabytes) {
  const store = fileStore(folder);
  await store.open();
  const processIdentity = { pid: process.pid, startedAt: null, boot: "b", pidNamespace: null };
  await store.register({ id: "writer", name: "writer", leaseMs: 15_000, process: processIdentity, handles: [] });
  const fill = "x".repeat(megabytes * 1024 * 1024);
  let version = 0;
  if ((await store.run(RUN)) === null) await create(store);
  else {
    version = JSON.parse((await store.state(RUN))[0].data).version;
    await store.take("writer", RUN);
  }
  const head = (await store.journal(RUN)).length;
  for (;;) {
    version += 1;
    const state = [{ key: "big", data: JSON.stringify({ version, fill }) }];
    const [verdict] = await store.commit({ worker: "writer", runs: [{ run: RUN, head, entries: [], state }] });
    if (verdict.kind !== "applied") throw new Error(JSON.stringify(verdict));
    process.stdout.write(`${version}\n`);
  }
}

async function create(store) {
  const entry = { seq: 0, at: Date.now(), type: "run.started", key: null, data: null, hash: "h" };
  const create = { workflow: "writer", version: "1.0.0", traceId: "t", key: null, tags: [], priority: 0, parent: null };
  const rest = { origin: null, deadline: null, claimed: true, readyAt: 0, codec: "json" };
  const state = [{ key: "big", data: JSON.stringify({ version: 0 }) }];
  const part = { run: RUN, head: 0, entries: [entry], create: { ...create, ...rest }, state };
  await store.commit({ worker: "writer", runs: [part] });
}
