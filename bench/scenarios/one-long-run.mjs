import { workflow } from "pawl";
import { assertSameRows, bareWriter, compileCommits, openBare, recordingStore, timeBare } from "../bare.mjs";
import { openPawl, runSteps } from "../load.mjs";
import { collectGarbage, count, figure, median, pairedRatio, percent, spread, times } from "../measure.mjs";
import { steps } from "../workflows.mjs";

const WINDOW = 100;
const STEPS_A_ROUND = 50;

/** One sequential run: how fast, and whether its steps become dearer the longer it is. */
export async function oneLongRun({ newFile, quick }) {
  const length = quick ? 1000 : 10_000;
  const recorded = await record(newFile, length);
  return [await measureRate(newFile, length, recorded.compiled), measureGrowth(length, recorded)];
}

/**
 * The run itself makes room: every so many steps the function of one writes the bare commits of as many. What is compared was measured within
 * milliseconds; the speed of a machine changes within seconds.
 */
async function measureRate(newFile, length, compiled) {
  const db = await openBare(newFile());
  const write = bareWriter(db, compiled);
  const samples = { bare: [], pawl: [] };
  const perSecond = (ms) => (STEPS_A_ROUND * 1000) / ms;
  let last = performance.now();
  const round = (from) => {
    const begin = performance.now();
    for (let i = from; i < from + STEPS_A_ROUND; i++) write(compiled[i]);
    const end = performance.now();
    samples.pawl.push(perSecond(begin - last));
    samples.bare.push(perSecond(end - begin));
    last = end;
  };
  const sequential = workflow("steps", async (ctx, total) => {
    for (let i = 0; i < total; i++) {
      await ctx.step("add", async () => {
        if (i % STEPS_A_ROUND === 0) round(i);
        return i;
      });
    }
  });
  const pawl = await openPawl(newFile(), sequential);
  collectGarbage();
  await pawl.run(sequential, length);
  await pawl.close();
  db.close();
  const half = samples.pawl.length >> 1;
  const warm = { bare: samples.bare.slice(half), pawl: samples.pawl.slice(half) };
  const ratio = pairedRatio(warm);
  const ownUs = 1e6 / median(warm.pawl) - 1e6 / median(warm.bare);
  return {
    what: "one sequential run",
    pawl: spread(warm.pawl, "steps/s"),
    bare: spread(warm.bare, "steps/s"),
    ratio: percent(ratio),
    target: ">= 80 %",
    isMet: ratio >= 0.8,
    note: `${count(warm.pawl.length)} rounds of ${STEPS_A_ROUND} steps, a commit each, after as many to warm up; ${figure(ownUs)} us of a step are the engine's own, so a quicker disk makes the ratio worse`,
  };
}

// A sequential run commits once a step, so the i-th commit ends step i.
function measureGrowth(length, { pawlSamples, bareSamples }) {
  const early = (samples) => median([...samples.slice(WINDOW, 2 * WINDOW)]) * 1000;
  const late = (samples) => median([...samples.slice(length - WINDOW, length)]) * 1000;
  const growth = late(pawlSamples) / early(pawlSamples);
  const show = (samples) => `${figure(early(samples))} -> ${figure(late(samples))} us`;
  return {
    what: `step ${count(length)} against step ${WINDOW}`,
    pawl: show(pawlSamples),
    bare: show(bareSamples),
    ratio: times(growth),
    target: "<= 1.2 x",
    isMet: growth <= 1.2,
    note: `medians over ${WINDOW} steps; bare grows ${times(late(bareSamples) / early(bareSamples))}`,
  };
}

/** The first steps of a process wait for the compiler: step 100 is to be like any other. */
async function warmUp(file, length) {
  const pawl = await openPawl(file, steps);
  await runSteps(pawl, length);
  await pawl.close();
}

/** Also gives how long each commit took, from the end of the one before it. */
async function record(newFile, length) {
  await warmUp(newFile(), length >> 2);
  const files = { pawl: newFile(), bare: newFile() };
  const recording = recordingStore(files.pawl);
  const pawlSamples = [];
  let last = performance.now();
  const commit = async (request) => {
    const verdicts = await recording.store.commit(request);
    const now = performance.now();
    pawlSamples.push(now - last);
    last = now;
    return verdicts;
  };
  const pawl = await openPawl({ ...recording.store, commit }, steps);
  await runSteps(pawl, length);
  await pawl.close();
  const compiled = compileCommits(recording.commits);
  const bareSamples = await timeBare(files.bare, compiled);
  assertSameRows(files.pawl, files.bare);
  return { compiled, pawlSamples, bareSamples };
}
