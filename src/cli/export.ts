import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { type ExportOptions, exportRun } from "../client/export.ts";
import type { Pawl } from "../client/pawl.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { writeOutFile } from "./out-file.ts";
import { countOf } from "./printable.ts";
import { findRun } from "./run-id.ts";

interface ExportCommandOptions {
  readonly out?: string;
  readonly redact?: true | string;
  readonly document?: true;
}

export function addExport(program: Command): void {
  addCommand(program, "export <run>", "write a run with its journal as one portable JSON file", [
    "pawl export 0193a7c2 --out runs/order-17.json",
    "pawl export 0193a7c2 --redact",
    "pawl export 0193a7c2 --redact email,card --out runs/order-17.json",
    "pawl export 0193a7c2 --document --out order-17.json",
  ])
    .option("--out <file>", "write to this file instead of stdout")
    .option(
      "--redact [names]",
      "leave values out: all, or those of properties, steps, signals and state with these names, separated by commas; ids, keys, tags and times stay",
    )
    .option(
      "--document",
      "write its state document instead: phases, steps and statuses, for people and for pawl import",
    )
    .action(
      action<ExportCommandOptions, [string]>((call, text) =>
        withClient(call, async (pawl) => {
          const { options, out } = call;
          const { run, value, entries } = await exportedBy(pawl, await findRun(pawl, text), options);
          const json = `${JSON.stringify(value, null, 2)}\n`;
          if (options.out === undefined) process.stdout.write(json);
          else {
            writeOutFile(options.out, json);
            if (out.isJson) out.json({ run, file: options.out, entries });
            else out.print(`Run ${run} is in ${options.out} (${countOf(entries, "entry", "entries")}).`);
          }
          return EXIT.ok;
        }),
      ),
    );
}

async function exportedBy(pawl: Pawl, run: string, { document, redact }: ExportCommandOptions) {
  if (document !== true) {
    const value = await exportRun(pawl, run, redactionOf(redact));
    return { run, value, entries: value.entries.length };
  }
  if (redact !== undefined)
    throw new PawlError("invalid_argument", "--document has no --redact: leave one of them out.");
  const value = await pawl.get(run).document();
  return { run, value, entries: value.sequence };
}

function redactionOf(redact: true | string | undefined): ExportOptions {
  if (redact === undefined) return {};
  if (redact === true) return { redact: "all" };
  const names = redact
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  if (names.length > 0) return { redact: names };
  throw new PawlError(
    "invalid_argument",
    "--redact has no name in it. Give names such as email,card, or none for all values.",
  );
}
