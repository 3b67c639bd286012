// Prometheus text
// Metrics as a scraper reads them (text format 0.0.4). Runs are no labels, since every one of them would be a series of its own: the first of those
// that a bad number is about stand beside it in a comment.
import type { Metrics, Ratio } from "./metrics.ts";
import type { HistogramValue } from "./operating-counters.ts";

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number, suffix?: string];

const RUNS_SHOWN = 20;

const RATIOS: readonly (readonly [name: string, field: RatioField, help: string])[] = [
  ["resume_success", "resumeSuccess", "Resumed runs that ended without repair, of all resumed runs."],
  ["duplicate_safety", "duplicateSafety", "Duplicate deliveries without a second run or effect, of all duplicates."],
  ["retry_success", "retrySuccess", "Retried steps that succeeded in the end, of all retried steps."],
  ["compensation_success", "compensationSuccess", "Actions undone, of all that were to be undone."],
  ["cancellation_correctness", "cancellationCorrectness", "Cancelled runs without an effect after the cancel."],
  ["replay_success", "replaySuccess", "Replays that came to the recorded decisions, of all replays."],
  ["incident_recurrence", "incidentRecurrence", "Incidents whose regression case had existed before."],
];

type RatioField = {
  [Field in keyof Metrics]: Metrics[Field] extends Ratio ? Field : never;
}[keyof Metrics];

/** The text that `GET /metrics` answers with. */
export function prometheusText(metrics: Metrics): string {
  const { store, process, approvalWait } = metrics;
  const only: Labels = metrics.workflow === null ? {} : { workflow: metrics.workflow };
  const ratios = RATIOS.flatMap(([name, field, help]) => ratioLines(name, metrics[field], help, only));
  const waits = approvalWait.flatMap(({ workflow, approver, medianMs, p95Ms, count }): Sample[] => [
    [{ workflow, approver, quantile: "0.5" }, medianMs / 1000],
    [{ workflow, approver, quantile: "0.95" }, p95Ms / 1000],
    [{ workflow, approver }, count, "_count"],
  ]);
  const byState = Object.entries(store.runsByState).map(([state, count]): Sample => [{ state }, count ?? 0]);
  const byKind = Object.entries(store.waits).map(([kind, count]): Sample => [{ kind }, count]);
  const steps = Object.entries(process.steps).map(([outcome, count]): Sample => [{ outcome }, count]);
  return [
    ...ratios,
    ...family("approval_wait_seconds", "summary", "How long people took to decide.", waits),
    ...family("runs", "gauge", "Runs by state.", byState),
    ...family("waits", "gauge", "Open waits by kind.", byKind),
    ...family("queue_age_seconds", "gauge", "How long the first in line has waited for a worker.", [
      [{}, store.queueAgeMs / 1000],
    ]),
    ...family("metrics_complete", "gauge", "1 if all runs of the time asked for were looked at.", [
      [{}, metrics.isComplete && store.isComplete ? 1 : 0],
    ]),
    ...family("steps_total", "counter", "Attempts of steps by outcome, in this process.", steps),
    ...histogram("step_duration_seconds", "How long attempts of steps took.", process.stepSeconds),
    ...histogram("commit_duration_seconds", "How long the store took for a commit.", process.commitSeconds),
    ...histogram("commit_entries", "Entries in a commit.", process.commitEntries),
    ...family("claims_total", "counter", "Runs that this process has claimed.", [[{}, process.claims]]),
    ...family("lease_misses_total", "counter", "New incarnations that this process had to take.", [
      [{}, process.leaseMisses],
    ]),
    ...family("duplicates_total", "counter", "Starts and signals that had come before.", [[{}, process.duplicates]]),
    "",
  ].join("\n");
}

function ratioLines(name: string, { value, good, total, bad }: Ratio, help: string, labels: Labels): string[] {
  const shown = bad.slice(0, RUNS_SHOWN).map(plain).join(" ");
  const more = bad.length > RUNS_SHOWN ? ` and ${bad.length - RUNS_SHOWN} more` : "";
  return [
    ...(bad.length === 0 ? [] : [`# pawl_${name}_ratio is about: ${shown}${more}`]),
    ...family(`${name}_ratio`, "gauge", help, [[labels, value ?? Number.NaN]]),
    ...family(`${name}_good`, "gauge", `${help} The part.`, [[labels, good]]),
    ...family(`${name}_all`, "gauge", `${help} The whole.`, [[labels, total]]),
  ];
}

function histogram(name: string, help: string, { buckets, sum, count }: HistogramValue): string[] {
  return family(name, "histogram", help, [
    ...buckets.map(({ le, count: below }): Sample => [{ le: String(le) }, below, "_bucket"]),
    [{ le: "+Inf" }, count, "_bucket"],
    [{}, sum, "_sum"],
    [{}, count, "_count"],
  ]);
}

function family(name: string, type: string, help: string, samples: readonly Sample[]): string[] {
  if (samples.length === 0) return [];
  const full = `pawl_${name}`;
  const lines = samples.map(
    ([labels, value, suffix = ""]) => `${full}${suffix}${labelText(labels)} ${valueText(value)}`,
  );
  return [`# HELP ${full} ${help}`, `# TYPE ${full} ${type}`, ...lines];
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function valueText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  return String(value);
}

/** In a comment, a run's id stays on its line. */
function plain(run: string): string {
  return run.replaceAll(/[\r\n]/g, " ");
}
