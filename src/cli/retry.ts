import type { Command } from "commander";
import { actOnMany, assertOneOrMany, BULK_HELP, type BulkOptions } from "./bulk.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { printInheritor } from "./inheritor.ts";
import { recorded } from "./recorded.ts";
import { findRun } from "./run-id.ts";
import { WHERE_HELP } from "./selection.ts";

export function addRetry(program: Command): void {
  addCommand(program, "retry [run]", "start a new run that goes on where a failed or cancelled one stopped", [
    "pawl retry 0193a7c2",
    "pawl retry --where status=failed,workflow=checkout,after=2h --dry-run",
  ])
    .option("--where <pairs>", WHERE_HELP)
    .option("--dry-run", "with --where: only tell how many")
    .option("--by <name>", "with --where: who does it, for the audit log (default: the user of this machine)")
    .addHelpText("after", BULK_HELP)
    .action(
      action<BulkOptions, [string | undefined]>((call, text) =>
        withClient(call, async (pawl) => {
          assertOneOrMany(text, call.options);
          if (text === undefined) return actOnMany(call, pawl, { action: "retry" });
          const from = await findRun(pawl, text);
          const run = await recorded(call, pawl, from, () => pawl.retry(from));
          await printInheritor(call, pawl, { from, run: run.id });
          return EXIT.ok;
        }),
      ),
    );
}
