import type { Command } from "commander";
import type { CancelOutcome } from "../client/run.ts";
import { unlessNobodyCan } from "../client/unless-nobody-can.ts";
import { actOnMany, assertOneOrMany, BULK_HELP, type BulkOptions } from "./bulk.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { noteNobodyUndoes } from "./nobody.ts";
import { recorded } from "./recorded.ts";
import { findRun } from "./run-id.ts";
import { WHERE_HELP } from "./selection.ts";

interface CancelCommandOptions extends BulkOptions {
  readonly reason?: string;
  readonly compensate?: boolean;
}

const TELLS: Readonly<Record<CancelOutcome["outcome"], (run: string) => string>> = {
  cancelling: (run) => `Run ${run} is being cancelled.`,
  cancelled: (run) => `Run ${run} is cancelled.`,
  succeeded: (run) => `Run ${run} had already succeeded; nothing was cancelled.`,
  failed: (run) => `Run ${run} had already failed; nothing was cancelled.`,
};

export function addCancel(program: Command): void {
  addCommand(program, "cancel [run]", "stop a run, or all runs that fit", [
    'pawl cancel 0193a7c2 --reason "ordered twice"',
    "pawl cancel 0193a7c2 --compensate",
    "pawl cancel --where workflow=import,status=waiting --dry-run",
  ])
    .option("--reason <text>", "why, for the journal")
    .option("--compensate", "undo what the run has done, as far as it says how")
    .option("--where <pairs>", WHERE_HELP)
    .option("--dry-run", "with --where: only tell how many")
    .option("--by <name>", "with --where: who does it, for the audit log (default: the user of this machine)")
    .addHelpText("after", BULK_HELP)
    .action(
      action<CancelCommandOptions, [string | undefined]>((call, text) =>
        withClient(call, async (pawl) => {
          const { options, out, url } = call;
          assertOneOrMany(text, options);
          const { compensate = false, reason } = options;
          const how = { compensate, ...(reason !== undefined && { reason }) };
          if (text === undefined) return actOnMany(call, pawl, { action: "cancel", ...how });
          const run = await findRun(pawl, text);
          const progress = out.progress("Waiting for its worker to record the cancellation");
          const cancelling = recorded(call, pawl, run, () =>
            unlessNobodyCan(pawl, run, (signal) => pawl.cancel(run, { ...how, signal })),
          );
          const outcome = (await cancelling.finally(progress.done))?.outcome ?? null;
          if (out.isJson) out.json({ run, outcome });
          else if (outcome !== null) out.print(TELLS[outcome](run));
          if (outcome !== null) return EXIT.ok;
          await noteNobodyUndoes(out, url, pawl, run);
          return EXIT.waiting;
        }),
      ),
    );
}
