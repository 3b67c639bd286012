import type { Command } from "commander";
import type { StartOptions } from "../client/start.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { noteIfNobodyWorks } from "./inheritor.ts";
import { readValue, wholeNumber } from "./input.ts";

interface StartCommandOptions {
  readonly key?: string;
  readonly id?: string;
  readonly tag?: readonly string[];
  readonly delay?: string;
  readonly deadline?: string;
  readonly priority?: string;
  readonly version?: string;
}

export function addStart(program: Command): void {
  addCommand(program, "start <workflow> [input]", "hand a run to the workers; input is JSON, @file or - for stdin", [
    `pawl start checkout '{"order":17}' --key order-17   # started twice, run once`,
    "pawl start report @input.json --delay 2h --tag nightly",
  ])
    .option("--key <key>", "one run per key: a repeated start gives the same run")
    .option("--id <id>", "the run's id")
    .option("--tag <tag...>", "to find it by")
    .option("--delay <duration>", 'start no earlier: 90s, 2h, "3 days"')
    .option("--deadline <duration>", "fail it if it is not done by then")
    .option("--priority <n>", "higher goes first")
    .option("--version <version>", "of the workflow (default: the newest that a live worker has)")
    .action(
      action<StartCommandOptions, [string, string | undefined]>((call, name, text) =>
        withClient(
          call,
          async (pawl) => {
            const input = await readValue(text, "INPUT");
            const run = await pawl.start(name, input, startOptions(call.options));
            if (call.out.isJson) call.out.json({ id: run.id });
            else {
              call.out.print(run.id);
              await noteIfNobodyWorks(call.out, call.url, pawl, run.id);
            }
            return EXIT.ok;
          },
          { create: true },
        ),
      ),
    );
}

function startOptions({ key, id, tag, delay, deadline, priority, version }: StartCommandOptions): StartOptions {
  return {
    ...(key !== undefined && { key }),
    ...(id !== undefined && { id }),
    ...(tag !== undefined && { tags: tag }),
    ...(delay !== undefined && { delay }),
    ...(deadline !== undefined && { deadline }),
    ...(priority !== undefined && { priority: wholeNumber(priority, "--priority", Number.MIN_SAFE_INTEGER) }),
    ...(version !== undefined && { version }),
  };
}
