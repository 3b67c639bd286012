import { type Command, Option } from "commander";
import { formatMs } from "../base/duration.ts";
import type { RunSummary } from "../client/run.ts";
import type { RunQuery } from "../client/run-list.ts";
import { type PublicStatus, RUN_STATES, type RunState } from "../core/transition.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { wholeNumber } from "./input.ts";
import { clean } from "./printable.ts";
import { paintStatus, statusText } from "./status.ts";
import { storeFlag } from "./store-url.ts";
import { type Cell, table } from "./table.ts";
import { parseTime, timeOf } from "./times.ts";

interface LsOptions {
  readonly workflow?: string;
  readonly status?: string;
  readonly tag?: string;
  readonly after?: string;
  readonly before?: string;
  readonly limit?: string;
  readonly cursor?: string;
}

const STATUSES: readonly string[] = ["running", "waiting", "succeeded", "failed", "cancelled"];

export function addLs(program: Command): void {
  addCommand(program, "ls", "list runs, newest first", [
    "pawl ls --status failed --after 2h",
    "pawl ls --workflow checkout --json",
  ])
    .option("--workflow <name>", "only runs of this workflow")
    .addOption(
      new Option("--status <status>", "only runs in this state").choices([...new Set([...STATUSES, ...RUN_STATES])]),
    )
    .option("--tag <tag>", "only runs with this tag")
    .option("--after <time>", "only runs started after a date or a time ago: 2026-11-15, 2h")
    .option("--before <time>", "only runs started before a date or a time ago")
    .option("--limit <n>", "how many", "20")
    .option("--cursor <cursor>", "go on where the last list ended")
    .action(
      action<LsOptions, []>((call) =>
        withClient(call, async (pawl) => {
          const { runs, cursor } = await pawl.list(queryOf(call.options, pawl.store.clock.now()));
          if (call.out.isJson) call.out.json({ runs, cursor });
          else if (runs.length === 0)
            call.out.note(isFiltered(call.options) ? "No run fits." : "No runs in this store yet.");
          else printRuns(call, runs, cursor, pawl.store.clock.now());
          return EXIT.ok;
        }),
      ),
    );
}

function queryOf(options: LsOptions, now: number): RunQuery {
  const { workflow, tag, cursor, after, before, status, limit = "20" } = options;
  const isPublic = status !== undefined && STATUSES.includes(status);
  return {
    limit: wholeNumber(limit, "--limit", 1),
    ...(workflow !== undefined && { workflow }),
    ...(tag !== undefined && { tag }),
    ...(cursor !== undefined && { cursor }),
    ...(after !== undefined && { after: parseTime(after, "--after", now) }),
    ...(before !== undefined && { before: parseTime(before, "--before", now) }),
    ...(status !== undefined && (isPublic ? { status: status as PublicStatus } : { state: status as RunState })),
  };
}

function printRuns(call: Call<LsOptions>, runs: readonly RunSummary[], cursor: string | null, now: number): void {
  const { out, url } = call;
  const header: Cell[] = ["RUN", "WORKFLOW", "STATUS", "STARTED", "TOOK", "KEY"];
  const rows = runs.map((run): Cell[] => [
    run.id,
    clean(`${run.workflow} ${run.version}`),
    { text: statusText(run), paint: paintStatus(out.color, run.status, run.state) },
    timeOf(run.createdAt),
    formatMs((run.endedAt?.getTime() ?? now) - run.createdAt.getTime()),
    clean(run.key ?? ""),
  ]);
  for (const line of table([header, ...rows], { right: [4], width: out.width, header: out.color.dim })) out.print(line);
  if (cursor !== null) out.note(out.noteColor.dim(`More: pawl ls --cursor ${cursor}${storeFlag(url)}`));
}

function isFiltered({ workflow, status, tag, after, before, cursor }: LsOptions): boolean {
  return [workflow, status, tag, after, before, cursor].some((option) => option !== undefined);
}
