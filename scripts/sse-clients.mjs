// Many readers of one live run: how soon each entry reaches all of them, and whether the server's memory stays where it is.
//
//   node scripts/sse-clients.mjs --clients 200 --minutes 10
//
// A worker (this process) and a server (a process of its own: `pawl serve`) share a SQLite file. A run writes an entry now and then; the time from its
// being acknowledged to its arrival is taken at every client.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Pawl, workflow } from "../dist/index.js";
import { newCredential } from "../dist/server/index.js";
import { readOptions } from "./read-options.mjs";

const values = readOptions(import.meta.url, {
  clients: { type: "string", default: "200" },
  minutes: { type: "string", default: "10" },
});
const clients = Number(values.clients);
const minutes = Number(values.minutes);
const EVERY_MS = 1000;

const folder = mkdtempSync(join(tmpdir(), "pawl-sse-"));
const store = join(folder, "pawl.db");
const { token, credential } = newCredential("bench", ["viewer"]);
writeFileSync(join(folder, "auth.json"), JSON.stringify([credential]));

const ticking = workflow({ name: "ticking", deadline: "1 day" }, async (ctx) => {
  for (;;) if ((await ctx.waitFor("tick")) === "end") return;
});
const pawl = await Pawl.open(store, { workflows: [ticking], handleSignals: false });
const run = await pawl.start(ticking);
const server = await startServer();

/** When each tick was sent, by its number; and how long it took to each client. */
const sentAt = new Map();
const took = [];
let connected = 0;
const all = Array.from({ length: clients }, follow);
await until(() => connected === clients);
console.log(`${clients} clients are connected to pid ${server.pid}, for ${minutes} minutes.`);

const memory = [];
const endAt = Date.now() + minutes * 60_000;
for (let n = 0; Date.now() < endAt; n++) {
  sentAt.set(n, performance.now());
  await pawl.signal(run.id, "tick", n);
  await pause(EVERY_MS);
  if (n % 10 === 0) memory.push(memoryOf(server.pid));
}
await pawl.signal(run.id, "tick", "end");
const gaps = (await Promise.all(all)).filter((seqs) => !seqs.every((seq, index) => seq === index)).length;
report();
server.kill("SIGTERM");
await pawl.close();
rmSync(folder, { recursive: true, force: true });

async function startServer() {
  const main = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
  const args = [main, "serve", "--store", store, "--port", "0", "--auth", join(folder, "auth.json"), "--json"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await new Promise((resolve) => child.stdout.once("data", (text) => resolve(String(text).split("\n"))));
  child.port = JSON.parse(line).port;
  return child;
}

/** One reader: resolves with the positions that it has seen when the run has ended. */
function follow() {
  return new Promise((resolve, reject) => {
    const seqs = [];
    const options = { port: server.port, path: `/api/runs/${run.id}/events`, agent: false };
    const asked = request({ ...options, headers: { authorization: `Bearer ${token}` } }, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`the server answered ${response.statusCode}`));
      connected++;
      let text = "";
      response.setEncoding("utf8").on("data", (part) => {
        const events = (text + part).split("\n\n");
        text = events.pop() ?? "";
        for (const event of events) take(event, seqs);
      });
      response.once("end", () => resolve(seqs));
    });
    asked.once("error", reject).end();
  });
}

function take(event, seqs) {
  const [, seq] = /^id: (\d+)$/m.exec(event) ?? [];
  if (seq === undefined) return;
  seqs.push(Number(seq));
  const [, n] = /"type":"signal.received".*"payload":(\d+)/.exec(event) ?? [];
  if (n !== undefined && sentAt.has(Number(n))) took.push(performance.now() - sentAt.get(Number(n)));
}

function memoryOf(pid) {
  const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) / 1024;
}

function report() {
  took.sort((a, b) => a - b);
  const at = (part) => took[Math.min(took.length - 1, Math.floor(took.length * part))]?.toFixed(0);
  const half = memory.slice(Math.floor(memory.length / 2));
  const mib = (list) => `${Math.min(...list).toFixed(0)} to ${Math.max(...list).toFixed(0)} MiB`;
  console.log(
    `From the call that sent a signal to its entry at a client, ${took.length} arrivals of ${sentAt.size} entries:`,
  );
  console.log(`  p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`);
  console.log(`Memory of the server: ${mib(memory)}; in the second half ${mib(half)}.`);
  console.log(`Clients that missed an entry, or had one twice: ${gaps} of ${clients}.`);
}

async function until(check) {
  while (!check()) await pause(50);
}

function pause(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
