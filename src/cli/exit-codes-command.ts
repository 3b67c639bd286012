import type { Command } from "commander";
import { action, addCommand } from "./command.ts";
import { EXIT, EXIT_CODES, EXIT_CODES_HELP } from "./exit-codes.ts";

export function addExitCodes(program: Command): void {
  addCommand(program, "exit-codes", "what the exit codes mean", ["pawl exit-codes"])
    .description(EXIT_CODES_HELP)
    .action(
      action(async ({ out }) => {
        if (out.isJson) out.json(EXIT_CODES);
        else out.print(EXIT_CODES_HELP);
        return EXIT.ok;
      }),
    );
}
