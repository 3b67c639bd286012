import { assertSameRows, compileCommits, recordingStore, sum, timeBare } from "../bare.mjs";
import { openPawl, runSteps } from "../load.mjs";
import { alternate, count, elapsed, figure, median, pairedRatio, percent, spread, times } from "../measure.mjs";
import { steps } from "../workflows.mjs";

const WINDOW = 100;

/** One sequential run: how fast, and whether its steps become dearer the longer it is. */
export async function oneLongRun({ newFile, quick }) {
  return [await measureRate(newFile, quick), await measureGrowth(newFile, quick)];
}

async function measureRate(newFile, quick) {
  const length = quick ? 200 : 2500;
  const { compiled, warmUp } = await record(newFile, length, length);
  const perSecond = (ms) => (length * 1000) / ms;
  const samples = await alternate(quick ? 1 : 9, {
    bare: async () => perSecond(sum(await timeBare(newFile(), compiled, warmUp))),
    pawl: async () => perSecond(await timePawl(newFile(), length)),
  });
  const ratio = pairedRatio(samples);
  return {
    what: "one sequential run",
    pawl: spread(samples.pawl, "steps/s"),
    bare: spread(samples.bare, "steps/s"),
    ratio: percent(ratio),
    target: ">= 80 %",
    isMet: ratio >= 0.8,
    note: `${count(length)} steps in ${count(compiled.length - warmUp)} commits`,
  };
}

// A sequential run commits once a step, so the i-th commit ends step i.
async function measureGrowth(newFile, quick) {
  const length = quick ? 1000 : 10_000;
  const { pawlSamples, bareSamples } = await record(newFile, length);
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

/** Also gives how long each commit took, from the end of the one before it. */
async function record(newFile, length, warmUpLength = 0) {
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
  if (warmUpLength > 0) await runSteps(pawl, warmUpLength);
  const warmUp = recording.commits.length;
  await runSteps(pawl, length);
  await pawl.close();
  const compiled = compileCommits(recording.commits);
  const bareSamples = await timeBare(files.bare, compiled);
  assertSameRows(files.pawl, files.bare);
  return { compiled, warmUp, pawlSamples, bareSamples };
}

async function timePawl(file, length) {
  const pawl = await openPawl(file, steps);
  await runSteps(pawl, length);
  const ms = await elapsed(() => runSteps(pawl, length));
  await pawl.close();
  return ms;
}
