import { type Command, Option } from "commander";
import { formatMs } from "../base/duration.ts";
import type { RunSummary } from "../client/run.ts";
import type { RunTotals } from "../client/run-list.ts";
import { action, addCommand, type Call, type CommonOptions, withClient } from "./command.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { wholeNumber } from "./input.ts";
import type { Output } from "./output.ts";
import { clean } from "./printable.ts";
import { type SelectionTexts, STATUSES, selectionOf } from "./selection.ts";
import { paintStatus, statusText } from "./status.ts";
import { storeFlag } from "./store-url.ts";
import { type Cell, table } from "./table.ts";
import { timeOf } from "./times.ts";

interface LsOptions extends SelectionTexts {
  readonly limit?: string;
  readonly cursor?: string;
  readonly count?: boolean;
}

export function addLs(program: Command): void {
  addCommand(program, "ls", "list runs, newest first", [
    "pawl ls --status failed --after 2h",
    "pawl ls --workflow checkout --json",
    "pawl ls --search order-17",
    "pawl ls --owner team-payments --count",
  ])
    .option("--workflow <name>", "only runs of this workflow")
    .addOption(new Option("--status <status>", "only runs in this state").choices(STATUSES))
    .option("--tag <tag>", "only runs with this tag")
    .option("--owner <name>", "only runs that this owner has to see to")
    .option("--search <text>", "only runs whose id, workflow, key or a tag begins with this")
    .option("--after <time>", "only runs started after a date or a time ago: 2026-11-15, 2h")
    .option("--before <time>", "only runs started before a date or a time ago")
    .option("--count", "tell how many there are, by status, instead of listing them")
    .option("--limit <n>", "how many", "20")
    .option("--cursor <cursor>", "go on where the last list ended")
    .action(
      action<LsOptions, []>((call) =>
        withClient(call, async (pawl) => {
          const { options, out } = call;
          const now = pawl.store.clock.now();
          const selection = selectionOf(options, now);
          if (options.count === true) return printCounts(out, await pawl.operations.count(selection));
          const { limit = "20", cursor: at } = options;
          const page = { limit: wholeNumber(limit, "--limit", 1), ...(at !== undefined && { cursor: at }) };
          const { runs, cursor } = await pawl.list({ ...selection, ...page });
          if (out.isJson) out.json({ runs, cursor });
          else if (runs.length === 0) out.note(isFiltered(options) ? "No run fits." : "No runs in this store yet.");
          else printRuns(call, runs, cursor, now);
          return EXIT.ok;
        }),
      ),
    );
}

function printCounts(out: Output, totals: RunTotals): ExitCode {
  const { counts, atLeast } = totals;
  if (out.isJson) out.json(totals);
  else for (const [status, count] of Object.entries(counts)) out.print(`${status.padEnd(10)} ${count}`);
  if (atLeast) out.note("At least: counting ends at 10,000 runs of a state.");
  return EXIT.ok;
}

function printRuns(call: Call<LsOptions>, runs: readonly RunSummary[], cursor: string | null, now: number): void {
  const { out, url } = call;
  const hasOwners = runs.some(({ responsible }) => responsible !== undefined);
  const header: Cell[] = ["RUN", "WORKFLOW", "STATUS", "STARTED", "TOOK", "KEY", ...(hasOwners ? ["OWNER"] : [])];
  const rows = runs.map((run): Cell[] => [
    run.id,
    clean(`${run.workflow} ${run.version}`),
    { text: statusText(run), paint: paintStatus(out.color, run.status, run.state) },
    timeOf(run.createdAt),
    formatMs((run.endedAt?.getTime() ?? now) - run.createdAt.getTime()),
    clean(run.key ?? ""),
    ...(hasOwners ? [clean(run.responsible ?? "")] : []),
  ]);
  for (const line of table([header, ...rows], { right: [4], width: out.width, header: out.color.dim })) out.print(line);
  if (cursor !== null) out.note(out.noteColor.dim(`More: pawl ls --cursor ${cursor}${storeFlag(url)}`));
}

function isFiltered({ limit, count, ...filters }: LsOptions & CommonOptions): boolean {
  const { json, store, ...rest } = filters;
  return Object.values(rest).some((option) => option !== undefined);
}
