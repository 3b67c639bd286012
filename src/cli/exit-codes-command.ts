import type { Command } from "commander";
import { EXIT_CODES_HELP } from "./exit-codes.ts";

export function addExitCodes(program: Command): void {
  program
    .command("exit-codes")
    .summary("what the exit codes mean")
    .description(EXIT_CODES_HELP)
    .addHelpText("after", "\nExample:\n  $ pawl exit-codes")
    .action(() => void process.stdout.write(`${EXIT_CODES_HELP}\n`));
}
