import type { Command } from "commander";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { operatorOf } from "./operator.ts";
import { countOf } from "./printable.ts";

interface PurgeCommandOptions {
  readonly workflow?: string;
  readonly succeeded?: string;
  readonly failed?: string;
  readonly dryRun?: boolean;
  readonly by?: string;
}

export function addPurge(program: Command): void {
  addCommand(program, "purge", "delete finished runs that are old enough and that nobody holds", [
    "pawl purge --dry-run",
    'pawl purge --workflow import --succeeded 1d --failed "7 days"',
  ])
    .option("--workflow <name>", "only runs of this workflow")
    .option("--succeeded <time>", "how long ago succeeded runs must have ended (default: 30 days)")
    .option("--failed <time>", "how long ago failed and cancelled runs must have ended (default: 90 days)")
    .option("--dry-run", "only tell how many")
    .option("--by <name>", "who does it, for the audit log (default: the user of this machine)")
    .addHelpText("after", HELP)
    .action(
      action<PurgeCommandOptions, []>((call) =>
        withClient(call, async (pawl) => {
          const { workflow, succeeded, failed, dryRun = false, by } = call.options;
          const progress = call.out.progress("Purging");
          const purged = await pawl.operations
            .purge({
              ...operatorOf("purge", by),
              dryRun,
              ...(workflow !== undefined && { workflow }),
              ...(succeeded !== undefined && { succeeded }),
              ...(failed !== undefined && { failed }),
            })
            .finally(progress.done);
          if (call.out.isJson) call.out.json({ purged: dryRun ? 0 : purged, matched: purged, dryRun });
          else if (dryRun) call.out.print(`${countOf(purged, "run")} would be deleted. Nothing was changed.`);
          else call.out.print(`${countOf(purged, "run")} deleted.`);
          return EXIT.ok;
        }),
      ),
    );
}

const HELP = `
Workers do the same by themselves every minute, with the retention that they were opened with. Workflows that have a retention of their own
keep to that. Runs that are held stay: pawl holds.`;
