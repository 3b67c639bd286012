import type { Command } from "commander";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { printInheritor } from "./inheritor.ts";
import { recorded } from "./recorded.ts";
import { findRun } from "./run-id.ts";

export function addRetry(program: Command): void {
  addCommand(program, "retry <run>", "start a new run that goes on where a failed or cancelled one stopped", [
    "pawl retry 0193a7c2",
  ]).action(
    action<object, [string]>((call, text) =>
      withClient(call, async (pawl) => {
        const from = await findRun(pawl, text);
        const run = await recorded(call, pawl, from, () => pawl.retry(from));
        await printInheritor(call, pawl, { from, run: run.id });
        return EXIT.ok;
      }),
    ),
  );
}
