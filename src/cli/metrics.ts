import { type Command, InvalidArgumentError } from "commander";
import { formatMs, toMs } from "../base/duration.ts";
import type { MetricsQuery } from "../client/metrics.ts";
import { knownIncidents, readIncidents } from "../observe/incidents.ts";
import type { Metrics, Ratio } from "../observe/metrics.ts";
import { prometheusText } from "../observe/prometheus.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { CASES_FOLDER, CASES_HELP } from "./eval-files.ts";
import { EXIT } from "./exit-codes.ts";
import { clean, countOf, truncate } from "./printable.ts";
import { type Cell, table } from "./table.ts";

interface MetricsOptions {
  readonly since?: string;
  readonly workflow?: string;
  readonly prometheus?: boolean;
  readonly cases?: string;
}

export function addMetrics(program: Command): void {
  addCommand(program, "metrics", "how runs have fared: eight numbers, each with the runs behind it", [
    "pawl metrics",
    "pawl metrics --since 30d --workflow order --json",
    "pawl metrics --prometheus",
  ])
    .option("--since <time>", "runs created since then: a duration such as 7d, or a date", assertTime)
    .option("--workflow <name>", "only runs of this workflow")
    .option("--prometheus", "as text for a scraper")
    .option("--cases <folder>", CASES_HELP)
    .action(
      action<MetricsOptions, []>((call) =>
        withClient(call, async (pawl) => {
          const { since, workflow, cases = CASES_FOLDER } = call.options;
          const query: MetricsQuery = {
            incidents: knownIncidents(readIncidents(cases)),
            ...(since !== undefined && { since: timeFrom(since, pawl.store.clock.now()) }),
            ...(workflow !== undefined && { workflow }),
          };
          show(call, await pawl.metrics(query));
          return EXIT.ok;
        }),
      ),
    );
}

function assertTime(text: string): string {
  if (Number.isNaN(timeFrom(text, 0).getTime()))
    throw new InvalidArgumentError("Give a duration such as 7d, or a date such as 2026-05-01.");
  return text;
}

function timeFrom(text: string, now: number): Date {
  if (/^\d{4}-/.test(text)) return new Date(text);
  try {
    return new Date(now - toMs(text, "--since"));
  } catch {
    return new Date(Number.NaN);
  }
}

const ROWS = [
  ["resume success", "resumeSuccess"],
  ["duplicate safety", "duplicateSafety"],
  ["retry success", "retrySuccess"],
  ["compensation success", "compensationSuccess"],
  ["cancellation correctness", "cancellationCorrectness"],
  ["replay success", "replaySuccess"],
  ["incident recurrence", "incidentRecurrence"],
] as const;

function show({ out, options }: Call<MetricsOptions>, metrics: Metrics): void {
  if (options.prometheus === true) return out.print(prometheusText(metrics).trimEnd());
  if (out.isJson) return out.json(metrics);
  const header: Cell[] = ["METRIC", "VALUE", "OF", "RUNS TO LOOK AT"];
  const ratios = ROWS.map(([name, field]): Cell[] => [
    name,
    ratioText(metrics[field]),
    `${metrics[field].good} of ${metrics[field].total}`,
    clean(truncate(metrics[field].bad.join(" "), 80)),
  ]);
  const waits = metrics.approvalWait.map(({ workflow, approver, medianMs, p95Ms, count }): Cell[] => [
    clean(`approval wait, ${workflow}, ${approver}`),
    `${formatMs(medianMs)}, p95 ${formatMs(p95Ms)}`,
    String(count),
    "",
  ]);
  for (const line of table([header, ...ratios, ...waits], { width: out.width, header: out.color.dim })) out.print(line);
  const all = metrics.isComplete ? "" : ", the newest of more";
  out.note(`${countOf(metrics.runs, "run")} since ${metrics.since.toISOString()}${all}.`);
}

function ratioText({ value }: Ratio): string {
  return value === null ? "none" : String(Math.round(value * 1000) / 1000);
}
