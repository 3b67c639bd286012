// Measures Pawl on PostgreSQL: `npm run bench:pg`. `--quick`: small counts, to see that it works; `--only name`: one scenario.
// How it compares with others is measured by bench/peers. A full run writes its section of bench/RESULTS.md.

import { openPostgres } from "../../scripts/postgres-server.mjs";
import { readOptions } from "../../scripts/read-options.mjs";
import { DATA } from "../peers/driver.mjs";
import { table } from "../report.mjs";
import { writeSection } from "../results.mjs";
import { longRun } from "./long-run.mjs";
import { processes } from "./processes.mjs";
import { section } from "./report.mjs";
import { sleepers } from "./sleepers.mjs";

const SCENARIOS = { processes, "long-run": longRun, sleepers };

const values = readOptions(import.meta.url, { quick: { type: "boolean", default: false }, only: { type: "string" } });
const names = values.only === undefined ? Object.keys(SCENARIOS) : [values.only];
const unknown = names.find((name) => SCENARIOS[name] === undefined);
if (unknown !== undefined) {
  console.error(`There is no scenario "${unknown}". Choose one of: ${Object.keys(SCENARIOS).join(", ")}.`);
  process.exit(2);
}

const server = await openPostgres({ folder: DATA, settings: { max_connections: 200, shared_buffers: "512MB" } });
const rows = [];
try {
  for (const name of names) {
    console.error(`${name} …`);
    rows.push(...(await SCENARIOS[name]({ url: server.url, quick: values.quick })));
  }
} finally {
  await server.stop();
}
console.log(table(rows));
if (!values.quick && values.only === undefined) {
  writeSection("postgres", section(rows, server.source));
  console.log("Written to bench/RESULTS.md.");
}
