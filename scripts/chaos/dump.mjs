// What somebody needs who wants to know why nothing moves: workers, orphans, and of each run that has not ended its journal and `pawl why`.
import { execFile } from "node:child_process";
import { appendFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const PAWL = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const MOST = 20;
const execute = promisify(execFile);

export async function dump(store, file, runs, target) {
  const write = (title, value) =>
    appendFileSync(target, `# ${title}\n${typeof value === "string" ? value : JSON.stringify(value, null, 1)}\n\n`);
  write("workers", await store.workers());
  write("orphans", await store.orphans());
  write("runs that have not ended", runs);
  for (const run of runs.slice(0, MOST)) {
    write(`row of ${run}`, await store.run(run));
    write(`waits of ${run}`, await store.waits({ run }));
    write(`inbox of ${run}`, await store.inbox(run));
    write(`journal of ${run}`, (await store.journal(run)).map((entry) => JSON.stringify(entry)).join("\n"));
    write(`pawl why ${run}`, await why(file, run));
  }
}

async function why(file, run) {
  try {
    const { stdout } = await execute(process.execPath, [PAWL, "why", run, "--store", file], { timeout: 20_000 });
    return stdout;
  } catch (error) {
    return `${error.stdout ?? ""}${error.stderr ?? ""}${error.message}`;
  }
}
