// A process with an engine in it, for tests that kill it. Its one argument says what to do, in JSON; it tells what happens as one JSON
// object a line on stdout, and takes commands the same way on stdin.
//
//   store, files, options   what Pawl is opened with
//   kill                    { point, n }: SIGKILL at the n-th time that point is reached, see below
//   runs                    { workflow, id, input, signal? }: started, or gone on with, under their ids
//   stay                    true: do not end with the runs, wait for commands

import { createInterface } from "node:readline";
import { hasCode, Pawl, sqliteStore } from "pawl";
import { installHooks, loadWorkflows } from "../../dist/cli/load.js";
import { openGate } from "./gates.mjs";

const { store, storeOptions = {}, files, options = {}, kill, runs = [], stay = false } = JSON.parse(process.argv[2]);
installHooks();
const { wayBack } = await import("../../examples/fakes.ts");

const say = (event, facts = {}) => process.stdout.write(`${JSON.stringify({ event, ...facts })}\n`);

// "before-commit" and "after-commit" of every transaction that SQLite is asked for, and "effect": in a step, behind its outside effect.
let reached = 0;
function reach(point) {
  if (point === kill?.point && ++reached === kill.n) process.kill(process.pid, "SIGKILL");
}

const { travel } = wayBack;
wayBack.travel = async (line) => {
  reach("effect");
  await travel(line);
};

const log = (level) => (message) => say("log", { level, message });
const logger = { debug: () => {}, info: log("info"), warn: log("warn"), error: log("error") };

async function result(run) {
  try {
    say("result", { run: run.id, output: (await run.result()) ?? null });
  } catch (error) {
    say("result", { run: run.id, error: { name: error.name, message: error.message, code: error.code } });
  }
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

async function start({ workflow, id, input, signal }) {
  const run = await pawl.start(workflow, input, { id });
  say("started", { run: run.id });
  if (signal !== undefined) await answer(run, signal);
  await result(run);
}

const commands = {
  start,
  open: ({ gate }) => openGate(gate),
  block: ({ ms }) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
  status: async ({ id }) => say("status", { status: await pawl.get(id).status() }),
  idle: async () => {
    await pawl.idle();
    say("idle");
  },
};

const workflows = await loadWorkflows(files);
const file = sqliteStore(store, { ...storeOptions, fault: reach });
const pawl = await Pawl.open(file, { workflows, logger, ...options });
say("open", { pid: process.pid });

if (stay) {
  const input = createInterface({ input: process.stdin });
  input.on("line", (line) => {
    const { command, ...facts } = JSON.parse(line);
    Promise.resolve(commands[command](facts)).catch((error) => say("failed", { command, message: error.message }));
  });
}
await Promise.all(runs.map(start));
if (!stay) {
  await pawl.close();
  say("closed");
}
