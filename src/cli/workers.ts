import type { Command } from "commander";
import { formatMs } from "../base/duration.ts";
import { examineRuns, neededVersion, type StrandedRuns } from "../client/doctor.ts";
import { isLive, ownHandles, type WorkerStatus, workerFacts } from "../client/worker-health.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { clean, countOf } from "./printable.ts";
import { storeFlag } from "./store-url.ts";
import { type Cell, table } from "./table.ts";
import { timeOf } from "./times.ts";

/** Runs that are looked at for versions that nobody has: `pawl doctor` looks at all of them. */
const MOST_RUNS = 1000;

export function addWorkers(program: Command): void {
  addCommand(program, "workers", "list the workers: what they can run, how many runs they have, how they are", [
    "pawl workers",
    "pawl workers --json --store postgres://app@db.example.com/app",
  ])
    .addHelpText("after", HEALTH)
    .action(
      action<object, []>((call) =>
        withClient(call, async (pawl) => {
          const workers = await pawl.workers();
          const { stranded, isComplete } = await examineRuns(pawl.store, workers, MOST_RUNS);
          if (call.out.isJson) call.out.json({ workers: workers.map(workerFacts), stranded, isComplete });
          else print(call, workers, stranded, isComplete);
          return EXIT.ok;
        }),
      ),
    );
}

const HEALTH = `
HEALTH is live; late, if two heartbeats are missing; expired, if its lease is over; dead, if its process on this machine is gone;
stopped, if that process is there but does not run. Other workers take over what an expired or dead one had. Runs that no
live worker can take are listed below, among the newest ${MOST_RUNS.toLocaleString("en")} that have not ended.`;

function print(
  { out, url }: Call<unknown>,
  workers: readonly WorkerStatus[],
  stranded: readonly StrandedRuns[],
  isComplete: boolean,
): void {
  if (workers.length === 0) out.note(`No worker. Start one with: pawl worker <file>${storeFlag(url)}`);
  else {
    const header: Cell[] = ["WORKER", "PID", "SINCE", "HEALTH", "LEASE", "RUNS", "WORKFLOWS"];
    const { color } = out;
    const rows = workers.map((worker): Cell[] => [
      clean(worker.name),
      String(worker.process.pid),
      timeOf(worker.startedAt),
      {
        text: worker.health,
        paint: worker.health === "live" ? color.green : isLive(worker) ? color.yellow : color.red,
      },
      worker.leaseLeftMs < 0 ? "over" : formatMs(worker.leaseLeftMs),
      worker.runs.toLocaleString("en"),
      clean(
        ownHandles(worker.handles)
          .map(({ workflow, version }) => `${workflow} ${version}`)
          .join(", "),
      ),
    ]);
    for (const line of table([header, ...rows], { right: [1, 4, 5], width: out.width, header: color.dim }))
      out.print(line);
  }
  for (const { workflow, version, runs, example } of stranded) {
    const what = `${countOf(runs, "run")} of ${workflow} ${version}${isComplete ? "" : " or more"} stranded: no live worker can take`;
    const text = `${what} ${runs === 1 ? "it" : "them"} (for example ${example}). Start one that has ${neededVersion(workflow, version)}.`;
    out.print(out.color.yellow(clean(text)));
  }
}
