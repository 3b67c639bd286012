import type { Command } from "commander";
import type { Advanced } from "../client/advance.ts";
import { action, addCommand, withPawl } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { readValue } from "./input.ts";
import { loadWork, pickWorkflow } from "./load.ts";
import { stderrLog } from "./log.ts";
import type { Output } from "./output.ts";
import { clean } from "./printable.ts";
import { startOrFind } from "./run.ts";

interface AdvanceCommandOptions {
  readonly key?: string;
  readonly id?: string;
  readonly toEnd?: true;
}

export function addAdvance(program: Command): void {
  addCommand(
    program,
    "advance <file> <workflow> [input]",
    "execute one phase of a run and stop, or all that are left",
    [
      "pawl advance workflows/bugfix.ts bugfix --key AE-33995   # again and again, one phase each time",
      "pawl advance workflows/bugfix.ts bugfix --key AE-33995 --to-end",
    ],
  )
    .option("--key <key>", "one run per key: if there is one, go on with it")
    .option("--id <id>", "the run's id: if there is one, go on with it")
    .option("--to-end", "execute all phases that are left")
    .addHelpText(
      "after",
      `\nInput is JSON, @file or - for stdin. A phase that has failed gives exit code ${EXIT.waiting}.`,
    )
    .action(
      action<AdvanceCommandOptions, [string, string, string | undefined]>(async (call, file, name, text) => {
        const { workflows, notifiers } = await loadWork([file]);
        const workflow = pickWorkflow(workflows, name, file);
        const input = text === undefined ? undefined : { value: await readValue(text, "INPUT") };
        return withPawl(call, { workflows, notifiers, logger: stderrLog(call.out) }, async (pawl) => {
          const { key, id, toEnd } = call.options;
          const { run } = await startOrFind(pawl, { workflow, input, key, id }, { advance: true });
          const advanced = await pawl.advance(run.id, { to: toEnd === true ? "end" : "phase" });
          if (call.out.isJson) call.out.json(advanced);
          else print(call.out, advanced);
          return EXIT.ok;
        });
      }),
    );
}

function print(out: Output, { run, phase, isEnded, document }: Advanced): void {
  const did = phase === null ? "There was no phase left" : `Phase "${clean(phase)}" is done`;
  out.print(`${did}; ${isEnded ? `run ${run} has ended` : `next is "${clean(document.phase ?? "")}" of run ${run}`}.`);
}
