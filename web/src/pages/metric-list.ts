// The server's metrics as lines to show: a number, what it is made of, and the runs behind it.
import { duration } from "../format.ts";
import type { WireMetrics, WireRatio } from "../wire.ts";

export interface Metric {
  readonly name: string;
  readonly text: string;
  /** What it is made of. */
  readonly says: string;
  /** What it counts something bad of comes first. */
  readonly runs: readonly string[];
  readonly bad: readonly string[];
}

const RATIOS = {
  resumeSuccess: ["Resumed well", "went on after a crash, a park or a retry and ended without repair"],
  retrySuccess: ["Retries that helped", "steps that were tried again succeeded in the end"],
  duplicateSafety: ["Duplicates without harm", "repeated deliveries led to no second run or effect"],
  compensationSuccess: ["Undone", "actions that were to be undone were"],
  cancellationCorrectness: ["Cancelled cleanly", "cancelled runs did nothing outside after that"],
  replaySuccess: ["Replayed alike", "replays came to the recorded decisions"],
  incidentRecurrence: ["Incidents that came back", "incidents had a regression case before"],
} as const satisfies Partial<Record<keyof WireMetrics, readonly [string, string]>>;

export function metricsIn(metrics: WireMetrics): Metric[] {
  const ratios = (Object.keys(RATIOS) as (keyof typeof RATIOS)[]).map((key) => ratioLine(metrics[key], RATIOS[key]));
  const waits = metrics.approvalWait.map(({ workflow, approver, count, medianMs, p95Ms, runs }) => ({
    name: `Approvals of ${workflow} by ${approver}`,
    text: duration(medianMs),
    says: `half of ${count} were decided within this, 95 of 100 within ${duration(p95Ms)}`,
    runs,
    bad: [],
  }));
  return [...ratios, ...waits];
}

function ratioLine({ value, good, total, runs, bad }: WireRatio, [name, what]: readonly [string, string]): Metric {
  const text = value === null ? "–" : `${(value * 100).toLocaleString("en", { maximumFractionDigits: 1 })}%`;
  const says = value === null ? "nothing to count yet" : `${good} of ${total} ${what}`;
  return { name, text, says, runs: [...new Set([...bad, ...runs])], bad };
}
