import type { Command } from "commander";
import { FORK_EFFECTS, type ForkEffects } from "../core/dry.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { printInheritor } from "./inheritor.ts";
import { recorded } from "./recorded.ts";
import { findRun } from "./run-id.ts";

interface ForkCommandOptions {
  readonly at: string;
  readonly effects?: string;
}

export function addFork(program: Command): void {
  addCommand(program, "fork <run>", "start a new run that inherits a run's journal up to a point", [
    "pawl fork 0193a7c2 --at charge",
    "pawl fork 0193a7c2 --at 12",
    "pawl fork 0193a7c2 --at charge --effects dry-run    # nothing is done outside",
  ])
    .requiredOption(
      "--at <step|seq>",
      "before this step, or before the entry with this number (pawl journal shows both)",
    )
    .option("--effects <policy>", `what becomes of calls that act outside: ${FORK_EFFECTS.join(", ")} (default: live)`)
    .action(
      action<ForkCommandOptions, [string]>((call, text) =>
        withClient(call, async (pawl) => {
          const from = await findRun(pawl, text);
          const { at, effects } = call.options;
          const how = {
            at: /^\d+$/.test(at) ? Number(at) : at,
            ...(effects !== undefined && { effects: effects as ForkEffects }),
          };
          const run = await recorded(call, pawl, from, () => pawl.fork(from, how));
          await printInheritor(call, pawl, { from, run: run.id });
          return EXIT.ok;
        }),
      ),
    );
}
