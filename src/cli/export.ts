import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { type ExportOptions, exportRun } from "../client/export.ts";
import type { Pawl } from "../client/pawl.ts";
import { exportPacket, withChildren } from "../client/replay-packet.ts";
import { evalFromRun, PERSONAL_NAMES } from "../testing/evals/regression.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { writeOutFile } from "./out-file.ts";
import { countOf } from "./printable.ts";
import { findRun } from "./run-id.ts";

interface ExportCommandOptions {
  readonly out?: string;
  readonly redact?: true | string;
  readonly document?: true;
  readonly packet?: true;
  readonly eval?: true;
  readonly expect?: string;
  readonly owner?: string;
  readonly expires?: string;
}

export function addExport(program: Command): void {
  addCommand(program, "export <run>", "write a run with its journal as one portable JSON file", [
    "pawl export 0193a7c2 --out runs/order-17.json",
    "pawl export 0193a7c2 --redact",
    "pawl export 0193a7c2 --redact email,card --out runs/order-17.json",
    "pawl export 0193a7c2 --document --out order-17.json",
    "pawl export 0193a7c2 --eval --expect succeeded --out evals/order_17.json",
    "pawl export 0193a7c2 --packet --out order-17.packet.json",
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
    .option(
      "--packet",
      "write a replay packet: the run, all runs below it, its ledger and the versions it was pinned to",
    )
    .option(
      "--eval",
      "write a regression case made from it; unless --redact says otherwise, without what tells of people",
    )
    .option(
      "--expect <status>",
      "with --eval: what it should have come to, such as succeeded (default: not what it came to)",
    )
    .option("--owner <name>", "with --eval: who sees to the case")
    .option("--expires <day>", "with --eval: when somebody should look at it again: 2027-01-31")
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

async function exportedBy(pawl: Pawl, run: string, options: ExportCommandOptions) {
  const { document, redact } = options;
  assertOneForm(options);
  if (options.eval === true) return caseOf(pawl, run, options);
  if (options.packet === true) {
    const value = await exportPacket(pawl, run, redactionOf(redact));
    return { run, value, entries: value.runs.reduce((sum, one) => sum + one.entries.length, 0) };
  }
  if (document !== true) {
    const value = await exportRun(pawl, run, redactionOf(redact));
    return { run, value, entries: value.entries.length };
  }
  if (redact !== undefined)
    throw new PawlError("invalid_argument", "--document has no --redact: leave one of them out.");
  const value = await pawl.get(run).document();
  return { run, value, entries: value.sequence };
}

function assertOneForm({ document, packet, eval: asCase, expect, owner, expires }: ExportCommandOptions): void {
  if ([document, packet, asCase].filter((one) => one === true).length > 1)
    throw new PawlError(
      "invalid_argument",
      "Of --document, --packet and --eval one is possible at a time. Leave the others out.",
    );
  if (asCase !== true && (expect ?? owner ?? expires) !== undefined)
    throw new PawlError(
      "invalid_argument",
      "--expect, --owner and --expires are for --eval. Add it, or leave them out.",
    );
}

async function caseOf(pawl: Pawl, run: string, { redact, expect, owner, expires }: ExportCommandOptions) {
  const how = redact === undefined ? { redact: PERSONAL_NAMES } : redactionOf(redact);
  const [exported, ...children] = await withChildren(pawl, run, how);
  if (exported === undefined) throw new Error("an export has at least its run");
  const value = evalFromRun(exported, {
    ...(expect !== undefined && { expect }),
    ...(owner !== undefined && { owner }),
    ...(expires !== undefined && { expires }),
    children,
  });
  return { run, value, entries: exported.entries.length };
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
