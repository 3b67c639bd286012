import type { Command } from "commander";
import type { CancelOutcome } from "../client/run.ts";
import { unlessNobodyCan } from "../client/unless-nobody-can.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { noteNobodyUndoes } from "./nobody.ts";
import { findRun } from "./run-id.ts";

interface CancelCommandOptions {
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
  addCommand(program, "cancel <run>", "stop a run", [
    'pawl cancel 0193a7c2 --reason "ordered twice"',
    "pawl cancel 0193a7c2 --compensate",
  ])
    .option("--reason <text>", "why, for the journal")
    .option("--compensate", "undo what the run has done, as far as it says how")
    .action(
      action<CancelCommandOptions, [string]>((call, text) =>
        withClient(call, async (pawl) => {
          const { options, out, url } = call;
          const run = await findRun(pawl, text);
          const progress = out.progress("Waiting for its worker to record the cancellation");
          const cancelling = unlessNobodyCan(pawl, run, (signal) =>
            pawl.cancel(run, {
              compensate: options.compensate === true,
              ...(options.reason !== undefined && { reason: options.reason }),
              signal,
            }),
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
