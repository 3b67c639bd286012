import type { Command } from "commander";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { wholeNumber } from "./input.ts";
import { clean, shortJson } from "./printable.ts";
import { findRun } from "./run-id.ts";
import { type Cell, table } from "./table.ts";

interface JournalOptions {
  readonly from?: string;
  readonly limit?: string;
}

export function addJournal(program: Command): void {
  addCommand(program, "journal <run>", "print a run's journal, entry by entry", [
    "pawl journal 0193a7c2 --from 10",
    "pawl journal 0193a7c2 --json",
  ])
    .option("--from <seq>", "begin at this entry", "0")
    .option("--limit <n>", "at most this many entries")
    .action(
      action<JournalOptions, [string]>(({ options, out, ...call }, text) =>
        withClient({ options, out, ...call }, async (pawl) => {
          const from = wholeNumber(options.from ?? "0", "--from", 0);
          const end = options.limit === undefined ? undefined : from + wholeNumber(options.limit, "--limit", 1);
          const entries = (await pawl.get(await findRun(pawl, text)).journal()).slice(from, end);
          if (out.isJson) out.json(entries.map((entry) => ({ ...entry, at: new Date(entry.at) })));
          else {
            const header: Cell[] = ["SEQ", "AT", "TYPE", "KEY", "PAYLOAD"];
            const rows = entries.map((entry): Cell[] => [
              String(entry.seq),
              new Date(entry.at).toISOString(),
              entry.type,
              clean(entry.key ?? ""),
              entry.payload === null ? "" : shortJson(entry.payload),
            ]);
            for (const line of table([header, ...rows], { right: [0], width: out.width, header: out.color.dim }))
              out.print(line);
          }
          return EXIT.ok;
        }),
      ),
    );
}
