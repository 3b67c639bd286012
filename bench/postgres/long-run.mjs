// One run of many steps: what it writes, and how soon a new process goes on with it.
import { Pawl, postgresStore } from "pawl";
import { answerOf, startChild } from "../child.mjs";
import { count, elapsed, median, spread } from "../measure.mjs";
import { resumed } from "../workflows.mjs";
import { numberOf, withSchema } from "./database.mjs";

const STEPS = 10_000;
const CHILD = new URL("./resumer.mjs", import.meta.url);

export async function longRun({ url, quick }) {
  const steps = quick ? 500 : STEPS;
  return withSchema(url, async ({ client, schema }) => {
    const pawl = await Pawl.open(postgresStore(url, { schema }), { workflows: [resumed], retention: false });
    const run = await pawl.start(resumed, steps);
    const before = await writes(client, schema);
    const ms = await elapsed(async () => {
      while ((await run.status()).status !== "waiting") await new Promise((resolve) => setTimeout(resolve, 20));
    });
    const after = await writes(client, schema);
    await pawl.close();
    const samples = [];
    for (let round = 0; round < (quick ? 1 : 5); round++) samples.push(await resume(url, schema, run.id));
    const inserted = (after.inserted - before.inserted) / steps;
    const updated = after.updated - before.updated;
    const best = Math.min(...samples);
    return [
      {
        what: `a run of ${count(steps)} steps: rows inserted per step; rows updated in all`,
        pawl: `${inserted.toFixed(2)}; ${updated}`,
        bare: "",
        ratio: "",
        target: "<= 2; none per step",
        isMet: inserted <= 2.05 && updated < steps / 100,
        note: `by the server's own counters, while it ran at ${count(Math.round((steps * 1000) / ms))} steps/s`,
      },
      {
        what: `a run of ${count(steps)} steps: from a claim to its next step`,
        pawl: spread(samples, "ms"),
        bare: "",
        ratio: "",
        target: "< 500 ms",
        isMet: median(samples) < 500,
        note: `a new process that has opened the store signals the run, claims it, reads and replays its journal; the best of ${samples.length} took ${best.toFixed(0)} ms`,
      },
    ];
  });
}

async function writes(client, schema) {
  // The counters of a session reach the server's statistics when it is idle for a moment.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const sum = (column) =>
    numberOf(client, `select sum(${column}) from pg_stat_all_tables where schemaname = '${schema}'`);
  return { inserted: await sum("n_tup_ins"), updated: await sum("n_tup_upd") };
}

/** Milliseconds from the signal to the step behind it. The run is forked first, so that it can be done again. */
async function resume(url, schema, run) {
  const child = startChild(CHILD, { url, schema, run });
  const { ms } = await answerOf(child, null);
  await new Promise((resolve) => child.once("exit", resolve));
  return ms;
}
