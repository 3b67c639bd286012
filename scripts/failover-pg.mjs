// Failover: every process of the primary is killed with runs under way, its standby is promoted, and the fleet finds it. With a synchronous standby nothing
// that was acknowledged may be lost; with an asynchronous one it is told how much was, and the rest must make sense. `npm run failover:pg` builds first.
//
//   --mode NAME       "synchronous", "asynchronous" or "both", which is the default
//   --runs N          runs of 10 steps of 20 ms in each mode, 4,000; a few runs of other kinds beside them
//   --failovers N     in each mode, 4; after each the new primary gets a standby of its own
//   --lag MS          how far the asynchronous standby is behind when its primary dies, 300
//   --workers N, --kills N, --freezes N   as in chaos:pg: 4, 8, 2
//   --pooler          a PgBouncer in transaction mode before all of it: who asks nothing while it happens does not notice that there was a failover
//   --without-identity   takes rule P15 away: fences no longer name the server that they were written on. Shows what the rule is for
//   --seed TEXT, --keep, --json           as in chaos:pg

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { postgresStore } from "../dist/index.js";
import { FleetTrial, LEASE_MS } from "./chaos/fleet-trial.mjs";
import { FILES, Judge } from "./chaos/judge.mjs";
import { Ledger, monotonic } from "./chaos/ledger.mjs";
import { Losses } from "./chaos/losses.mjs";
import { MovingAddress } from "./chaos/moving-address.mjs";
import { close, say, tell, whole } from "./chaos/report.mjs";
import { RULES, rulesAfterLoss } from "./chaos/rules.mjs";
import { openPgBouncer } from "./pgbouncer.mjs";
import { openPair } from "./postgres-pair.mjs";
import { readOptions } from "./read-options.mjs";

const values = readOptions(import.meta.url, {
  mode: { type: "string", default: "both" },
  runs: { type: "string", default: "4000" },
  workers: { type: "string", default: "4" },
  kills: { type: "string", default: "8" },
  freezes: { type: "string", default: "2" },
  failovers: { type: "string", default: "4" },
  lag: { type: "string", default: "300" },
  pooler: { type: "boolean", default: false },
  "without-identity": { type: "boolean", default: false },
  seed: { type: "string", default: String(Math.floor(Math.random() * 1e9)) },
  keep: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
});

const MODES = values.mode === "both" ? ["synchronous", "asynchronous"] : [values.mode];
const FAILOVER = "kill of the primary and promotion";
const NOTHING_LOST = "I1 a synchronous failover loses nothing that was acknowledged";

class Failover {
  #pair;
  #address;
  #losses;
  #judge;
  #lagMs;
  #isSynchronous;
  /** From here on whoever still had to do with the old primary knows better. */
  settledAt = 0;
  timesMs = [];

  constructor(pair, address, { losses, judge, lagMs, isSynchronous }) {
    this.#pair = pair;
    this.#address = address;
    this.#losses = losses;
    this.#judge = judge;
    this.#lagMs = lagMs;
    this.#isSynchronous = isSynchronous;
  }

  async happen({ workload }) {
    const killedAt = await this.#pair.kill(this.#isSynchronous ? 0 : this.#lagMs);
    const url = await this.#pair.promote();
    const lost = await this.#losses.examine(url, killedAt);
    if (lost > 0 && this.#isSynchronous)
      this.#judge.violation(
        NOTHING_LOST,
        `${lost} acknowledged operations are missing: ${JSON.stringify(this.#losses.found.at(-1))}`,
      );
    this.#address.moveTo(url);
    this.settledAt = monotonic() + 2 * LEASE_MS;
    if (!this.#isSynchronous) workload.sayAgain();
    await this.#watch(workload, killedAt);
    await this.#pair.renew();
  }

  /** Until the first result after it. */
  async #watch(workload, killedAt) {
    const before = workload.ended;
    while (workload.ended === before) await new Promise((resolve) => setTimeout(resolve, 5));
    this.timesMs.push(monotonic() - killedAt);
  }
}

/** As if a fence counted on whichever server it is found. */
async function takeIdentityAway(connectionString) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  const { rows } = await client.query(
    "select pg_get_functiondef(oid) as text from pg_proc where pronamespace = 'pawl'::regnamespace and prosrc like '%server = pg_postmaster_start_time()%'",
  );
  for (const { text } of rows) await client.query(text.replaceAll(" and server = pg_postmaster_start_time()", ""));
  await client.end();
  say(`Rule P15 is taken away from ${rows.length} functions`);
}

async function tryOnce(mode) {
  const isSynchronous = mode === "synchronous";
  const options = {
    seed: `${values.seed} ${mode}`,
    runs: whole("runs", values.runs, 1),
    workers: whole("workers", values.workers, 1),
    kills: whole("kills", values.kills),
    freezes: whole("freezes", values.freezes),
    strikes: { [FAILOVER]: whole("failovers", values.failovers) },
    mayLose: !isSynchronous,
  };
  const pair = await openPair({ isSynchronous, settings: { max_connections: 200 } });
  const address = new MovingAddress(pair.url);
  const direct = await address.open();
  const pooler = values.pooler ? await openPgBouncer(direct) : null;
  const url = pooler?.url ?? direct;
  const folder = mkdtempSync(join(tmpdir(), "pawl-failover-"));
  say(`Failover, ${mode}, ${options.runs} runs, ${options.workers} workers, seed ${values.seed}, in ${folder}`);
  const store = postgresStore(url);
  let failover = null;
  const since = () => failover.settledAt;
  const judge = new Judge(folder, store, {
    atOnce: 16,
    rules: isSynchronous ? RULES : rulesAfterLoss(since),
    mayBeLost: (time) => !isSynchronous && time < since(),
  });
  const losses = new Losses(new Ledger(join(folder, FILES.acks)));
  failover = new Failover(pair, address, { losses, judge, isSynchronous, lagMs: whole("lag", values.lag) });
  await store.open();
  if (values["without-identity"]) await takeIdentityAway(direct);
  const database = { url, mishaps: { [FAILOVER]: (trial) => failover.happen(trial) } };
  const trial = new FleetTrial(folder, { judge, database, options, say });
  const startedAt = performance.now();
  await trial.run();
  say(`Over after ${((performance.now() - startedAt) / 1000).toFixed(1)} s.\n`);
  for (const [i, { starts, signals, results, windowMs }] of losses.found.entries())
    say(
      `Failover ${i + 1}: first result ${failover.timesMs[i]?.toFixed(0)} ms after the kill; lost ${starts} starts, ${signals} signals, ` +
        `${results} results, the first acknowledged ${windowMs.toFixed(0)} ms before the kill`,
    );
  say("");
  const { injected, reached, figures } = trial;
  const { judged, violations } = judge;
  tell(
    { injected, reached, judged, violations, figures: { ...figures, mode, losses: losses.found } },
    folder,
    values.json,
  );
  await close(judge, folder, values.keep);
  await store.close();
  await pooler?.stop();
  await address.close();
  await pair.stop();
}

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
for (const mode of MODES) {
  if (mode !== "synchronous" && mode !== "asynchronous")
    throw new Error(`--mode is "${mode}". Give synchronous, asynchronous or both.`);
  await tryOnce(mode);
}
