// One process of the crew: an engine on the shared store, and a client that does what the driver asks for. Its one argument says how, in
// JSON; it answers on stdout, one JSON object a line, and only after what it was asked for is acknowledged.
//
//   build     the folder of the built package
//   store     the SQLite file, or the URL of a PostgreSQL database
//   ledger    the file
//   works     the names of the workflows it works on; none: it is a client only
//   patch     which build of the workflows
//   lease, stall, concurrency   options of Pawl
//   skew      see skewed-clock.mjs; null: the clock is right
//   fault     "full", "eio", "freeze" or "kill", see commit-fault.mjs; null: commits go well
//   seed      of its own dice

import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { chanceOf } from "./chance.mjs";
import { commitFault } from "./commit-fault.mjs";
import { leaseLooks } from "./lease-looks.mjs";
import { Ledger } from "./ledger.mjs";
import { programs } from "./programs.mjs";
import { skewedClock } from "./skewed-clock.mjs";

const task = JSON.parse(process.argv[2]);
const looks = leaseLooks();
const load = (path) => import(pathToFileURL(join(task.build, path)).href);
const [pawlModule, { systemClock }] = await Promise.all([load("index.js"), load("base/clock.js")]);
const { Pawl, postgresStore, sqliteStore } = pawlModule;

const say = (facts) => process.stdout.write(`${JSON.stringify(facts)}\n`);
const ledger = new Ledger(task.ledger, () => looks.last());
let isOpen = false;

function fileOptions() {
  const clock = task.skew === null ? systemClock : skewedClock(systemClock, task.skew);
  if (task.fault === null) return { clock, fault: (point) => looks.reached(point) };
  const fault = commitFault(task.fault, chanceOf(task.seed), (kind) => {
    ledger.book("fault", { kind });
    if (task.fault === "freeze") say({ frozen: true });
  });
  return {
    clock,
    fault(point) {
      looks.reached(point);
      if (isOpen) fault(point);
    },
  };
}

/** A commit is known to be done when its answer is here: that is when the lease has to be looked at anew. */
function overNetwork(url) {
  const store = postgresStore(url);
  const commit = async (request) => {
    const verdicts = await store.commit(request);
    looks.reached("after-commit");
    return verdicts;
  };
  return { ...store, commit };
}

const openStore = () =>
  task.store.startsWith("postgres:") ? overNetwork(task.store) : sqliteStore(task.store, fileOptions());

/** Whoever is started while the database is away waits for it. */
async function openPatiently(options) {
  for (;;) {
    try {
      return await Pawl.open(openStore(), options);
    } catch (error) {
      if (error.code !== "storage_unavailable") throw error;
      await new Promise((resolve) => {
        setTimeout(resolve, 100 + Math.random() * 200);
      });
    }
  }
}

const logged = (level) => (message, fields) => say({ log: level, message, run: fields?.run });
const logger = { debug() {}, info: logged("info"), warn: logged("warn"), error: logged("error") };

const workflows = programs(pawlModule, { ledger, patch: task.patch }).filter(({ name }) => task.works.includes(name));
const pawl = await openPatiently({
  workflows,
  logger,
  lease: task.lease,
  concurrency: task.concurrency,
  ...(task.stall === null ? {} : { stall: task.stall }),
});
isOpen = true;
say({ up: true });

const plainError = ({ name, message, code }) => ({ name, message, code });

// These are no results of a run, but of the asking.
const NO_ANSWER = ["closed", "storage_unavailable", "unknown_outcome", "run_not_found", "corrupted_journal"];

async function resultOf(run) {
  try {
    return { output: await pawl.get(run).result() };
  } catch (error) {
    if (NO_ANSWER.includes(error.code)) throw error;
    return { error: error.message };
  }
}

const asks = {
  start: async ({ workflow, input, options }) => (await pawl.start(workflow, input, options)).id,
  signal: ({ run, name, payload, id }) => pawl.signal(run, name, payload, { id }),
  cancel: async ({ run }) => (await pawl.cancel(run, { reason: "the driver asked" })).outcome,
  resolve: ({ run, choice }) => pawl.resolve(run, choice),
  result: ({ run }) => resultOf(run),
};

const questions = createInterface({ input: process.stdin });
// A driver that is gone asks nothing any more.
questions.on("close", () => process.exit());
questions.on("line", (line) => {
  const { n, ask, ...facts } = JSON.parse(line);
  asks[ask](facts).then(
    (value) => say({ n, value: value ?? null }),
    (error) => say({ n, error: plainError(error) }),
  );
});
