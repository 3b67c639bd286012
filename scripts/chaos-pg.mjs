// Chaos on PostgreSQL: a fleet of worker processes that are killed and frozen, a server that is ended at once and started again, thousands of runs
// under way all the time, and a judge who counts outside effects. `npm run chaos:pg` builds first. See docs/reliability.md for what is judged.
//
//   --runs N          runs of 10 steps of 20 ms, 20,000; a few runs of other kinds beside them
//   --workers N       processes, 8
//   --kills N         SIGKILLs of a worker, 60
//   --freezes N       SIGSTOPs of a worker past its lease, 8
//   --crashes N       immediate stops of the server, with a start after each, 10
//   --seed TEXT       repeats what is drawn, not when processes get to run
//   --keep            keep the folder of a good trial, too
//   --json            the report as one JSON object on the last line

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { postgresStore } from "../dist/index.js";
import { FleetTrial } from "./chaos/fleet-trial.mjs";
import { Judge } from "./chaos/judge.mjs";
import { close, say, tell, whole } from "./chaos/report.mjs";
import { openPostgres } from "./postgres-server.mjs";
import { readOptions } from "./read-options.mjs";

const values = readOptions(import.meta.url, {
  runs: { type: "string", default: "20000" },
  workers: { type: "string", default: "8" },
  kills: { type: "string", default: "60" },
  freezes: { type: "string", default: "8" },
  crashes: { type: "string", default: "10" },
  seed: { type: "string", default: String(Math.floor(Math.random() * 1e9)) },
  keep: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
});

const CONNECTIONS = 300;
const JUDGED_AT_ONCE = 16;

async function tryOnce() {
  const options = {
    seed: values.seed,
    runs: whole("runs", values.runs, 1),
    workers: whole("workers", values.workers, 1),
    kills: whole("kills", values.kills),
    freezes: whole("freezes", values.freezes),
    strikes: { "immediate stop and start of the server": whole("crashes", values.crashes) },
  };
  const server = await openPostgres({ settings: { max_connections: CONNECTIONS } });
  if (server.crash === null) throw new Error("TEST_PG_URL is set: that server is not ours to stop. Unset it.");
  const folder = mkdtempSync(join(tmpdir(), "pawl-chaos-pg-"));
  say(
    `Chaos on PostgreSQL (${server.source}), ${options.runs} runs, ${options.workers} workers, seed ${options.seed}, in ${folder}`,
  );
  const store = postgresStore(server.url);
  const judge = new Judge(folder, store, { atOnce: JUDGED_AT_ONCE });
  await store.open();
  const database = {
    url: server.url,
    mishaps: { "immediate stop and start of the server": () => server.crash() },
  };
  const trial = new FleetTrial(folder, { judge, database, options, say });
  const startedAt = performance.now();
  await trial.run();
  const seconds = (performance.now() - startedAt) / 1000;
  say(`Over after ${seconds.toFixed(1)} s.\n`);
  const { injected, reached, figures } = trial;
  const { judged, violations } = judge;
  tell({ injected, reached, judged, violations, figures: { ...figures, seconds } }, folder, values.json);
  await close(judge, folder, values.keep);
  await store.close();
  await server.stop();
}

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
if (process.platform === "win32") throw new Error("Chaos freezes processes with SIGSTOP, which Windows does not have.");
await tryOnce();
