// Short runs on one database, 128 of them in flight, by one, two and four worker processes. More processes must not make it slower, and what
// limits it should be the server: its CPU, or how often it can sync.
import { availableParallelism } from "node:os";
import { answerOf, startChild } from "../child.mjs";
import { count, figure, median, spread } from "../measure.mjs";
import { numberOf, serverCpu, withSchema } from "./database.mjs";

const CHILD = new URL("./worker.mjs", import.meta.url);
const IN_FLIGHT = 128;
const STEPS = 10;
const COUNTS = [1, 2, 4];
/** Each process compiles the engine's code for itself, and on few cores the others wait for that. A worker that has run for a while is done with it. */
const WARM_UP_MS = 12_000;

export async function processes({ url, quick }) {
  const samples = new Map(COUNTS.map((n) => [n, []]));
  const limits = [];
  for (let round = 0; round < (quick ? 1 : 5); round++)
    for (const n of COUNTS) {
      const { rate, ...limit } = await measure(url, n, quick);
      samples.get(n).push(rate);
      limits.push(limit);
    }
  const one = samples.get(1);
  return COUNTS.map((n) => {
    const ratios = samples.get(n).map((rate, round) => rate / one[round]);
    const ratio = median(ratios);
    return {
      what: `runs of ${STEPS} steps, ${IN_FLIGHT} in flight, ${n} process${n === 1 ? "" : "es"}`,
      pawl: spread(samples.get(n), "steps/s"),
      bare: n === 1 ? "" : "one process",
      ratio: n === 1 ? "" : `${(ratio * 100).toFixed(0)} %`,
      target: n === 1 ? "" : ">= 85 %",
      isMet: n === 1 ? null : ratio >= 0.85,
      note: noteOf(limits.filter((limit) => limit.n === n)),
    };
  });
}

function noteOf(limits) {
  const of = (field) => figure(median(limits.map((limit) => limit[field])));
  return `CPU in use: the server ${of("server")}, the workers ${of("workers")} (of ${count(availableParallelism())} cores); ${of("syncs")} syncs of the log a second, ${of("steps")} steps in each`;
}

async function measure(url, n, quick) {
  return withSchema(url, async ({ client, schema }) => {
    const children = [];
    for (let i = 0; i < n; i++) {
      const child = startChild(CHILD, { url, schema, inFlight: IN_FLIGHT / n, steps: STEPS });
      children.push(child);
      await answerOf(child, null);
    }
    await Promise.all(children.map((child) => answerOf(child, { load: quick ? 1000 : WARM_UP_MS })));
    const before = { cpu: serverCpu(), syncs: await numberOf(client, "select wal_sync from pg_stat_wal") };
    const answers = await Promise.all(children.map((child) => answerOf(child, { load: quick ? 1000 : 5000 })));
    const after = { cpu: serverCpu(), syncs: await numberOf(client, "select wal_sync from pg_stat_wal") };
    await Promise.all(children.map((child) => answerOf(child, { close: true })));
    const seconds = median(answers.map((answer) => answer.ms)) / 1000;
    const runs = answers.reduce((sum, answer) => sum + answer.runs, 0);
    const rate = (runs * STEPS) / seconds;
    const syncs = (after.syncs - before.syncs) / seconds;
    return {
      n,
      rate,
      server: (after.cpu - before.cpu) / seconds,
      workers: answers.reduce((sum, answer) => sum + answer.cpu, 0) / seconds,
      syncs,
      steps: rate / syncs,
    };
  });
}
