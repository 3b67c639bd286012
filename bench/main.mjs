// Measures Pawl beside the bare limit of the same machine. `--quick`: small counts, to see that it works; `--only name`: one scenario.
// A full run also writes its section of bench/RESULTS.md.
import { readOptions } from "../scripts/read-options.mjs";
import { runChild } from "./child.mjs";
import { results, table } from "./report.mjs";
import { writeSection } from "./results.mjs";
import { SCENARIOS } from "./scenarios.mjs";

const CHILD = new URL("./children/scenario.mjs", import.meta.url);

const values = readOptions(import.meta.url, { quick: { type: "boolean", default: false }, only: { type: "string" } });
const names = values.only === undefined ? Object.keys(SCENARIOS) : [values.only];
const unknown = names.find((name) => SCENARIOS[name] === undefined);
if (unknown !== undefined) {
  console.error(`There is no scenario "${unknown}". Choose one of: ${Object.keys(SCENARIOS).join(", ")}.`);
  process.exit(2);
}

const rows = [];
for (const name of names) {
  console.error(`${name} …`);
  rows.push(...(await runChild(CHILD, { name, quick: values.quick })));
}
console.log(table(rows));
if (!values.quick && values.only === undefined) {
  writeSection("engine", results(rows, "npm run bench"));
  console.log("Written to bench/RESULTS.md.");
}
