import type { Command } from "commander";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { readValue } from "./input.ts";
import { clean } from "./printable.ts";
import { recorded } from "./recorded.ts";
import { findRun } from "./run-id.ts";

interface SignalOptions {
  readonly id?: string;
}

export function addSignal(program: Command): void {
  addCommand(program, "signal <run> <name> [payload]", "send a run a signal; payload is JSON, @file or - for stdin", [
    `pawl signal 0193a7c2 approved '{"by":"Ada"}'`,
    "pawl signal 0193a7c2 approved --id mail-4711   # sent twice, delivered once",
  ])
    .option("--id <id>", "sent again with the same id, it is the same signal")
    .action(
      action<SignalOptions, [string, string, string | undefined]>((call, text, name, payload) =>
        withClient(call, async (pawl) => {
          const { options, out } = call;
          const value = await readValue(payload, "PAYLOAD");
          const run = await findRun(pawl, text);
          const how = options.id === undefined ? {} : { id: options.id };
          await recorded(call, pawl, run, () => pawl.signal(run, name, value, how));
          if (out.isJson) out.json({ run, signal: name });
          else out.print(`Signal "${clean(name)}" is recorded for run ${run}.`);
          return EXIT.ok;
        }),
      ),
    );
}
