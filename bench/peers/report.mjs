// The table, its notes and the chart, from samples by peer and row.
import { cpus, totalmem, type } from "node:os";
import { count, figure, median } from "../measure.mjs";
import { barChart } from "./chart.mjs";
import { LEFT_OUT, NOTES } from "./peers.mjs";

const CHART_ROW = "rate-128";
/** Ourselves, each with whom it is compared: all others, and those on the same store. */
const OURS = [
  { name: "pawl", title: "Pawl on SQLite against the best other", isRival: () => true },
  {
    name: "pawl-postgres",
    title: "Pawl on PostgreSQL against the best other there",
    isRival: ({ store }) => store === "postgres",
  },
];
const isOurs = ({ name }) => OURS.some((ours) => ours.name === name);

/** The rows in their order; `better` says which end of the scale is. */
export function rowsOf(sizes) {
  const { crash, longSteps, resumeSteps, sleepers } = sizes;
  const rate = (inFlight) => ({
    id: `rate-${inFlight}`,
    what: `runs of 10 steps, ${count(inFlight)} in flight`,
    unit: "steps/s",
    better: "more",
  });
  return [
    ...[1, 16, 128, 1024].map(rate),
    { id: "long", what: `one run of ${count(longSteps)} steps`, unit: "steps/s", better: "more" },
    { id: "latency", what: "start to result, one step", unit: "ms", better: "less" },
    {
      id: "recovery",
      what: `SIGKILL with ${count(crash.runs)} runs in flight, restart to all done`,
      unit: "s",
      better: "less",
    },
    { id: "repeated", what: "… steps run twice", unit: `of ${count(crash.runs * crash.steps)}`, better: "less" },
    {
      id: "resume",
      what: `restart in a run of ${count(resumeSteps)} steps to its next step`,
      unit: "s",
      better: "less",
    },
    {
      id: "sleeping",
      what: `memory per sleeping run, ${count(sleepers.runs)} of them`,
      unit: "KB",
      better: "less",
      // A process that keeps none of them still ends a few megabytes above or below where it began.
      noise: 1,
    },
    { id: "sleeping-server", what: "… of the peer's own server", unit: "KB", better: "less", isOthersOnly: true },
  ];
}

/** The section as Markdown. */
export function section({ sizes, rows, peers, samples, remarks, skipped, circumstances }) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const head = ["", ...peers.map(({ title, version }) => `${title} ${version}`), ...OURS.map(({ title }) => title)];
  return [
    "# Pawl and its peers",
    "",
    `- ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC, Node ${circumstances.node}, ${circumstances.postgres}`,
    `- ${cpus().length} x ${cpus()[0].model}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()}`,
    `- \`npm run bench:peers\`, ${circumstances.minutes} minutes`,
    "",
    "![Steps per second at 128 runs in flight](peers.svg)",
    "",
    line(head),
    line(head.map(() => "---")),
    ...rows.map((row) =>
      line([
        `${row.what} (${row.unit})`,
        ...peers.map((peer) => cell(samples, peer, row)),
        ...leads(row, peers, samples),
      ]),
    ),
    "",
    ...explanation(sizes),
    "",
    ...peers.map(({ name, title }) => `- *${title}*: ${NOTES[name]}`),
    ...remarkLines(rows, peers, remarks),
    ...Object.entries({ ...LEFT_OUT, ...skipped }).map(([who, why]) => `- *${who}* is not measured: ${why}.`),
    "",
  ].join("\n");
}

function explanation({ levels, limitMs, sleepers }) {
  const most = Object.values(levels).map(count).join(", ");
  return [
    "Medians of the rounds, with the least and the most in brackets. The same driver does the same work with each peer, in turn in every round, each at",
    "its own durable defaults: every one of them syncs to the same disk before a step counts as done. Steps return a number. A worker process is one",
    "process on one Node for all; it is killed when half of the steps are recorded, and a step ran twice if its function was called twice. Seconds after a",
    "restart count from the spawn of the new process. Memory is what the worker process, after some seconds of load, adds to its RSS after garbage",
    "collection, with a small young generation (`--max-semi-space-size=2`) for all: what V8 keeps in reserve is not what sleeps.",
    `New runs are started for ${limitMs / 1000} s at each level, or until there were ${most} of them; sleeping ones for ${sleepers.limitMs / 1000} s.`,
  ];
}

function remarkLines(rows, peers, remarks) {
  return rows.flatMap(({ id, what }) =>
    peers.flatMap(({ name, title }) =>
      [...new Set(remarks.get(`${name} ${id}`))].map((text) => `- *${title}*, ${what}: ${text}.`),
    ),
  );
}

function cell(samples, peer, { id, isOthersOnly }) {
  const values = samples.get(`${peer.name} ${id}`) ?? [];
  if (values.length === 0) return isOthersOnly ? "" : "no figure";
  if (values.length === 1) return amount(values[0]);
  return `${amount(median(values))} (${amount(Math.min(...values))}..${amount(Math.max(...values))})`;
}

function amount(value) {
  return Math.abs(value) < 0.005 ? "0" : figure(value);
}

function leads(row, peers, samples) {
  return OURS.map(({ name, isRival }) => {
    const ours = peers.find((peer) => peer.name === name);
    const rivals = peers.filter((peer) => !isOurs(peer) && isRival(peer));
    return ours === undefined ? "" : lead(row, ours, rivals, samples);
  });
}

function lead(row, ours, rivals, samples) {
  const middle = (peer) => {
    const values = samples.get(`${peer.name} ${row.id}`) ?? [];
    return values.length === 0 ? null : median(values);
  };
  const others = rivals.map(middle).filter((value) => value !== null);
  const our = middle(ours);
  if (our === null || others.length === 0) return "";
  const best = row.better === "more" ? Math.max(...others) : Math.min(...others);
  if (Math.max(our, best) < (row.noise ?? 0)) return `equal: below ${row.noise} ${row.unit}, which is noise`;
  // A ratio means nothing where one side is nothing, or less by the noise of the measurement.
  if (our <= 0 || best <= 0)
    return our === best ? "equal" : our < best === (row.better === "less") ? "leads" : "behind";
  const ratio = row.better === "more" ? our / best : best / our;
  return ratio >= 1 ? `${figure(ratio)} x` : `behind: ${figure(ratio)} x`;
}

export function chart({ peers, samples }) {
  const bars = peers.flatMap((peer) => {
    const values = samples.get(`${peer.name} ${CHART_ROW}`) ?? [];
    return values.length === 0 ? [] : [{ label: peer.title, value: median(values), isOurs: isOurs(peer) }];
  });
  return bars.length === 0
    ? null
    : barChart({
        title: "Steps per second, 128 runs of 10 steps in flight",
        subtitle: "more is better; logarithmic scale; every engine at its durable defaults",
        bars: bars.toSorted((a, b) => b.value - a.value),
      });
}
