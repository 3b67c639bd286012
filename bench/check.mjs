// How long `pawl check` takes over 1,000 runs in flight with three kinds of change, on SQLite: npm run bench:check [-- --runs 10000]
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Pawl, workflow } from "../dist/index.js";
import { readOptions } from "../scripts/read-options.mjs";

const MAIN = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const values = readOptions(import.meta.url, { runs: { type: "string", default: "1000" } });
const count = Number(values.runs);
const folder = mkdtempSync(join(tmpdir(), "pawl-bench-check-"));

const body = (first) => async (ctx) => {
  for (const name of [first, "pay", "pack", "ship"]) await ctx.step(name, () => name);
  await ctx.waitFor("go");
};

/** A patch, a minor version beside the old one, and another way under the same version. */
const CHANGED = `
  import { workflow } from "pawl";
  const body = ${body};
  export const all = [["a", "1.0.1", "look"], ["b", "1.0.0", "look"], ["b", "1.1.0", "other"], ["c", "1.0.0", "other"]]
    .map(([name, version, first]) => workflow({ name, version }, body(first)));
`;

try {
  const workflows = ["a", "b", "c"].map((name) => workflow({ name, version: "1.0.0" }, body("look")));
  const pawl = await Pawl.open(join(folder, "pawl.db"), { workflows, durability: "process" });
  for (let n = 0; n < count; n++) await pawl.start(workflows[n % 3]);
  await pawl.idle();
  await pawl.close();
  writeFileSync(join(folder, "changed.mjs"), CHANGED);
  const startedAt = performance.now();
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [MAIN, "check", "changed.mjs", "--store", "pawl.db", "--json"],
    {
      cwd: folder,
      encoding: "utf8",
      maxBuffer: 1e9,
    },
  );
  const seconds = (performance.now() - startedAt) / 1000;
  if (stdout === "") throw new Error(stderr);
  const { looked, resumes, pinned, decision } = JSON.parse(stdout).runs;
  console.log(
    `${looked} runs: ${resumes} resume, ${pinned} pinned, ${decision} need a decision; ${seconds.toFixed(2)} s`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
