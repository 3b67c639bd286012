// A process that works on the bank's runs, for tests that kill and freeze it. Its one argument says what to do, in JSON:
//
//   store    the path of a SQLite file, or the URL of a PostgreSQL server with `schema`
//   run      { id, input }, started or gone on with
//   kill     { point, n }: SIGKILL when that point is reached for the n-th time, see kill-point.mjs
//   lease    of its worker
//
// It tells what happens as one JSON object a line on stdout, and opens the gate that is named on stdin.
import { createInterface } from "node:readline";
import { hasCode, Pawl, postgresStore, sqliteStore } from "pawl";
import { openGate } from "../crash/gates.mjs";
import { arm, reach } from "../crash/kill-point.mjs";
import { bank } from "./bank.mjs";

const { store: where, schema, run, kill, lease = "15s" } = JSON.parse(process.argv[2]);
const say = (event, facts = {}) => process.stdout.write(`${JSON.stringify({ event, ...facts })}\n`);
const isPostgres = where.startsWith("postgres");

/** What is sent to the server, by its kind; points are before it is sent, when it was, and when it was answered. */
const KINDS = [
  ["begin", /^begin isolation/],
  ["insert", /^insert into/],
  ["last", /transact_1/],
  ["commit", /^commit$/],
  ["batch", /commit_1/],
];

async function watchPg() {
  const { default: pg } = await import("pg");
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (config, ...rest) {
    const kind = KINDS.find(([, pattern]) => pattern.test(config.text))?.[0];
    if (kind === undefined) return query.call(this, config, ...rest);
    reach(`before ${kind}`);
    const answer = query.call(this, config, ...rest);
    // By then it has left this process.
    setImmediate(() => setImmediate(() => reach(`sent ${kind}`)));
    answer.then(
      () => reach(`answered ${kind}`),
      () => {},
    );
    return answer;
  };
}

if (isPostgres) await watchPg();
const store = isPostgres ? postgresStore(where, { schema }) : sqliteStore(where, { fault: reach });
// Heartbeats have a thread of their own where a worker freezes; the others are over before its first one.
if (kill !== undefined) delete store.pulse;
const logger = {
  debug: () => {},
  info: () => {},
  warn: (message) => say("log", { message }),
  error: (message) => say("log", { message }),
};
const pawl = await Pawl.open(store, { workflows: [bank], lease, poll: "100ms", logger });
say("open");
createInterface({ input: process.stdin }).on("line", (gate) => openGate(gate));
arm(kill);
const started = await pawl.start(bank, run.input, { id: run.id });
say("started");
try {
  say("result", { output: await started.result() });
} catch (error) {
  say("result", { error: hasCode(error, "lease_lost") ? "lease_lost" : String(error) });
}
await pawl.close();
process.exit(0);
