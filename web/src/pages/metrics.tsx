// Numbers, each with the runs behind it. The rates are the server's; what is drawn over time is counted here from the newest runs.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { withQuery } from "../api.ts";
import { count, duration, msOf, plural, shortId } from "../format.ts";
import { Empty, Loaded, NotAvailable } from "../notice.tsx";
import { Plot, type Series } from "../plot.tsx";
import { useResource } from "../resource.ts";
import { navigate, query, setQuery } from "../router.ts";
import type { WireMetrics, WireRuns, WireSummary } from "../wire.ts";
import { type Metric, metricsIn } from "./metric-list.ts";

/** Enough to see a shape; asking for more would make others wait. */
const NEWEST = 500;
const BUCKETS = 48;
const SHORTEST_MS = 60_000;
const SINCE = [
  ["1h", "Last hour", 3_600_000],
  ["24h", "Last 24 hours", 86_400_000],
  ["7d", "Last 7 days", 604_800_000],
  ["30d", "Last 30 days", 2_592_000_000],
] as const;

export function Metrics(): JSX.Element {
  const chosen = SINCE.find(([name]) => name === query.value.get("since")) ?? SINCE[1];
  const to = useMemo(() => Date.now(), [chosen]);
  const from = to - chosen[2];
  const since = new Date(from).toISOString();
  const runs = useResource<WireRuns>(withQuery("/api/runs", { after: since, limit: NEWEST }));
  const metrics = useResource<WireMetrics>(withQuery("/api/metrics", { since }));
  return (
    <div class="page">
      <div class="page-head">
        <h1>Metrics</h1>
        <label class="field field-inline">
          <span class="unseen">Time</span>
          <select value={chosen[0]} onChange={(event) => setQuery({ since: event.currentTarget.value })}>
            {SINCE.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Loaded of={runs}>
        {(page) =>
          page.runs.length === 0 ? (
            <Empty title="No runs in this time.">Choose a longer one.</Empty>
          ) : (
            <Plots runs={page.runs} isAll={page.cursor === null} from={from} to={to} />
          )
        }
      </Loaded>
      <h2>Reliability</h2>
      <Loaded of={metrics} missing={<NotAvailable what="Metrics" />}>
        {(data) => (
          <ul class="metrics">
            {metricsIn(data).map((metric) => (
              <li key={metric.name}>
                <MetricLine metric={metric} />
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </div>
  );
}

interface PlotsProps {
  readonly runs: readonly WireSummary[];
  readonly isAll: boolean;
  readonly from: number;
  readonly to: number;
}

const OUTCOMES = [
  ["succeeded", "--succeeded"],
  ["failed", "--failed"],
  ["cancelled", "--cancelled"],
  ["running", "--running"],
  ["waiting", "--waiting"],
] as const;

function Plots({ runs, isAll, from, to }: PlotsProps): JSX.Element {
  // The time begins with the oldest run that is here: before that, nothing is known or nothing was.
  const oldest = Math.min(...runs.map(({ createdAt }) => msOf(createdAt) ?? to));
  const start = Math.max(from, Math.min(oldest, to - SHORTEST_MS));
  const width = (to - start) / BUCKETS;
  const times = useMemo(
    () => Array.from({ length: BUCKETS }, (_, i) => (start + (i + 0.5) * width) / 1000),
    [start, width],
  );
  const outcomes = useMemo(() => outcomeSeries(runs, start, width), [runs, start, width]);
  const ended = useMemo(() => runs.filter(({ endedAt }) => endedAt !== null).reverse(), [runs]);
  const begun = useMemo(() => ended.map((run) => (msOf(run.createdAt) ?? 0) / 1000), [ended]);
  const durations = useMemo(() => durationSeries(ended), [ended]);
  return (
    <>
      {!isAll && <p class="dim">The newest {count(NEWEST)} runs are drawn.</p>}
      <div class="columns">
        <section>
          <h2>Runs started, by what became of them</h2>
          <Plot
            label="Runs started over time"
            span={{ from: start, to }}
            times={times}
            series={outcomes}
            format={(value) => count(Math.round(value))}
            onPick={(index) => {
              const at = start + index * width;
              const range = { after: new Date(at).toISOString(), before: new Date(at + width).toISOString() };
              navigate(withQuery("/runs", range));
            }}
          />
          <Key series={outcomes} />
        </section>
        <section>
          <h2>How long runs took</h2>
          <Plot
            label="Durations of runs"
            span={{ from: start, to }}
            times={begun}
            series={durations}
            isPoints
            format={duration}
            onPick={(index) => ended[index] !== undefined && navigate(`/runs/${encodeURIComponent(ended[index].id)}`)}
          />
          <p class="dim">{summaryOf(ended)}</p>
        </section>
      </div>
    </>
  );
}

function Key({ series }: { readonly series: readonly Series[] }): JSX.Element {
  return (
    <p class="plot-key">
      {series.map(({ name }) => (
        <a key={name} href={`/runs?status=${name}`} class={`key-${name}`}>
          {name}
        </a>
      ))}
    </p>
  );
}

/** Bars stand on each other: each series is drawn with those below it, the tallest first. */
function outcomeSeries(runs: readonly WireSummary[], start: number, width: number): Series[] {
  const shown = OUTCOMES.filter(([status]) => runs.some((run) => run.status === status));
  const below = new Array<number>(BUCKETS).fill(0);
  const stacked = shown.map(([status, color]) => {
    for (const run of runs)
      if (run.status === status) {
        const at = Math.floor(((msOf(run.createdAt) ?? 0) - start) / width);
        below[Math.min(Math.max(at, 0), BUCKETS - 1)]! += 1;
      }
    return { name: status, color, values: below.map((value) => (value === 0 ? null : value)) };
  });
  return stacked.reverse();
}

function durationSeries(ended: readonly WireSummary[]): Series[] {
  return (["succeeded", "failed", "cancelled"] as const).map((status) => ({
    name: status,
    color: `--${status}`,
    values: ended.map((run) => (run.status === status ? tookMs(run) : null)),
  }));
}

function tookMs({ createdAt, endedAt }: WireSummary): number {
  return (msOf(endedAt) ?? 0) - (msOf(createdAt) ?? 0);
}

function summaryOf(ended: readonly WireSummary[]): string {
  if (ended.length === 0) return "None has ended.";
  const sorted = ended.map(tookMs).sort((a, b) => a - b);
  const at = (part: number) => duration(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0);
  return `${plural(ended.length, "run")} ended: half of them within ${at(0.5)}, 95 of 100 within ${at(0.95)}.`;
}

function MetricLine({ metric }: { readonly metric: Metric }): JSX.Element {
  const { name, text, says, runs, bad } = metric;
  return (
    <details class="metric">
      <summary>
        <span class="metric-name">{name}</span>
        <span class="metric-value num">{text}</span>
        <span class="dim">{says}</span>
      </summary>
      {runs.length === 0 ? (
        <p class="dim">No runs are behind it.</p>
      ) : (
        <p class="metric-runs">
          {runs.slice(0, 50).map((run) => (
            <a key={run} class="tag mono" href={`/runs/${encodeURIComponent(run)}`}>
              {shortId(run)}
              {bad.includes(run) && " ✕"}
            </a>
          ))}
        </p>
      )}
    </details>
  );
}
