import type { Command } from "commander";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { printInheritor } from "./inheritor.ts";
import { recorded } from "./recorded.ts";
import { findRun } from "./run-id.ts";

interface ForkOptions {
  readonly at: string;
}

export function addFork(program: Command): void {
  addCommand(program, "fork <run>", "start a new run that inherits a run's journal up to a point", [
    "pawl fork 0193a7c2 --at charge",
    "pawl fork 0193a7c2 --at 12",
  ])
    .requiredOption(
      "--at <step|seq>",
      "before this step, or before the entry with this number (pawl journal shows both)",
    )
    .action(
      action<ForkOptions, [string]>((call, text) =>
        withClient(call, async (pawl) => {
          const from = await findRun(pawl, text);
          const { at } = call.options;
          const place = { at: /^\d+$/.test(at) ? Number(at) : at };
          const run = await recorded(call, pawl, from, () => pawl.fork(from, place));
          await printInheritor(call, pawl, { from, run: run.id });
          return EXIT.ok;
        }),
      ),
    );
}
