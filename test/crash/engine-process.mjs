// A process with engines in it, for tests that kill it. Its one argument says what to do, in JSON; it tells what happens as one JSON
// object a line on stdout, and takes commands the same way on stdin.
//
//   engines   one for each store: { store, options, runs, kill }, where runs are { workflow, id, key?, input, signal? }, started or gone on with; a
//             store is a SQLite file, or the URL of one in PostgreSQL, or of a directory, "file:…"; with `kill`, it is a life of its own
//   files     the modules whose workflows they work on
//   fakes     the module of the outside services
//   kill      { point, n }: SIGKILL when that point is reached for the n-th time, see kill-point.mjs
//   stay      true: do not end with the runs, wait for commands
//   pulse     whether heartbeats have a thread of their own, by default with `stay`: the others are over before its first one, and it takes
//             a quarter of their time

import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { basename, dirname } from "node:path";
import { createInterface } from "node:readline";
import { fileStore, hasCode, Pawl, postgresStore, sqliteStore } from "pawl";
import { openGate } from "./gates.mjs";
import { arm, faultOf, Life, mortal, reach } from "./kill-point.mjs";
// In the middle of a directory's writing a life cannot stop without a failure, and must not tidy up after it: a kill does not.
import "./mortal-disk.mjs";

const { engines, files, fakes, kill, stay = false, pulse = stay } = JSON.parse(process.argv[2]);
const { wayBack } = await import(fakes);

const say = (event, facts = {}) => process.stdout.write(`${JSON.stringify({ event, ...facts })}\n`);

const common = arm(kill);
// For hooks of a repository that end the process while it commits.
process.env.ENGINE_PID = String(process.pid);
const { travel } = wayBack;
wayBack.travel = async (line) => {
  reach("effect");
  await travel(line);
};

// What the engine tells of every run in passing is not among what runs and workers say.
const isInPassing = (level, event) => level === "info" && event !== undefined && !event.startsWith("worker.");
const log = (level) => (message, fields) => {
  if (!isInPassing(level, fields?.event)) say("log", { level, message, run: fields?.run });
};
const logger = { debug: () => {}, info: log("info"), warn: log("warn"), error: log("error") };

const modules = await Promise.all(files.map((path) => import(path)));
const workflows = modules.flatMap((exported) => Object.values(exported));

/**
 * Points of commits are those of SQLite, and in PostgreSQL the answer to one; in a directory, "document" is a document that has just got its name.
 */
function opener(store, life) {
  const fault = faultOf(life);
  if (store.startsWith("postgres")) return reachedByCommits(store, life);
  if (!store.startsWith("file:")) return sqliteStore(store, { fault });
  const isDocument = (point, path) => point === "sync-folder" && basename(dirname(path)) === "runs";
  const faultOfDisk = (point, path) => fault(isDocument(point, path) ? "document" : point);
  return fileStore(store.slice("file:".length), { fault: faultOfDisk, durability: "process" });
}

function reachedByCommits(url, life) {
  const address = new URL(url);
  const schema = address.searchParams.get("schema") ?? "pawl";
  address.searchParams.delete("schema");
  const store = postgresStore(address.href, { schema });
  const commit = store.commit.bind(store);
  store.commit = async (batch) => {
    const verdicts = await commit(batch);
    life.reach("after-commit");
    return verdicts;
  };
  return store;
}

async function openEngine({ store, options = {} }, life) {
  const opened = opener(store, life);
  if (!pulse) delete opened.pulse;
  const pawl = await Pawl.open(mortal(opened, life), { workflows, logger, ...options });
  // Behind Pawl's own listener, so that it has begun to stop when this is heard.
  process.once("SIGTERM", () => say("stopping"));
  say("open", { store });
  return pawl;
}

async function startRun(pawl, { workflow, id, key, input, signal }) {
  const run = await pawl.start(workflow, input, { id, key });
  say("started", { run: run.id });
  if (signal !== undefined) await answer(run, signal);
  await tellResult(run);
}

/** Answers the run's question once it has asked, as a person would: with an id, so that it may be sent again. */
async function answer(run, { name, payload, id }) {
  for await (const entry of run.events()) {
    if (entry.type !== "signal.awaited") continue;
    await run.signal(name, payload, { id }).catch((error) => {
      if (!hasCode(error, "run_ended")) throw error;
    });
    return;
  }
}

async function tellResult(run) {
  try {
    say("result", { run: run.id, output: (await run.result()) ?? null });
  } catch (error) {
    say("result", { run: run.id, error: { name: error.name, message: error.message, code: error.code } });
  }
}

/** Takes every byte that is left on the disk. */
function fillDisk(path) {
  const file = openSync(path, "w");
  for (let size = 65_536; size >= 1; ) {
    try {
      writeSync(file, Buffer.alloc(size));
    } catch {
      size = Math.floor(size / 2);
    }
  }
  closeSync(file);
}

async function obey(pawl, { command, ...facts }) {
  if (command === "start") await startRun(pawl, facts);
  if (command === "open") openGate(facts.gate);
  if (command === "status") say("status", { status: await pawl.get(facts.run).status() });
  if (command === "fill") fillDisk(facts.path);
  if (command === "free") rmSync(facts.path);
  say("done", { command });
}

async function work(engine, life) {
  const pawl = await openEngine(engine, life);
  if (stay) {
    createInterface({ input: process.stdin }).on("line", (line) => {
      obey(pawl, JSON.parse(line)).catch((error) => say("failed", { message: error.message, code: error.code }));
    });
  }
  await Promise.all((engine.runs ?? []).map((run) => startRun(pawl, run)));
  if (stay) return;
  // Runs that others have spawned have their time, too.
  await pawl.idle();
  await pawl.close();
}

/** An engine that is to be killed lives for itself; the others share a life. All lives are there before the first one begins. */
const lives = engines.map((engine) => (engine.kill === undefined ? common : new Life(engine.kill)));

async function liveOn(engine, life) {
  await life.within(() => work(engine, life));
  if (life === common) return;
  say("missed", { store: engine.store });
  life.end();
}

try {
  await Promise.all(engines.map((engine, i) => liveOn(engine, lives[i])));
  if (!stay) say("reached", { points: common.reached });
} catch (error) {
  say("failed", { message: error.message, code: error.code });
  // Those that have halted would never end.
  if (engines.some((engine) => engine.kill !== undefined)) process.exit(1);
  process.exitCode = 1;
}
