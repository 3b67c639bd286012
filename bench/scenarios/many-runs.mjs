import { assertSameRows, compileCommits, recordingStore, sum, timeBare } from "../bare.mjs";
import { closedLoop } from "../closed-loop.mjs";
import { openPawl, runSteps } from "../load.mjs";
import { alternate, count, elapsed, pairedRatio, percent, spread } from "../measure.mjs";
import { steps } from "../workflows.mjs";

const STEPS = 10;
const WARM_UP = 4;
const LEVELS = [
  { inFlight: 1, runs: 200, target: null },
  { inFlight: 128, runs: 4096, target: 0.4 },
  { inFlight: 1024, runs: 8192, target: 0.5 },
];

/** Short runs from start to result, as many at a time as the level says. */
export async function manyRuns({ newFile, quick }) {
  const rows = [];
  for (const level of LEVELS) rows.push(await measureLevel(level, newFile, quick));
  return rows;
}

async function measureLevel({ inFlight, runs, target }, newFile, quick) {
  const total = quick ? Math.min(runs, inFlight * 2, 512) : runs;
  const load = (pawl, runs) => closedLoop(runs, inFlight, () => runSteps(pawl, STEPS));
  const counts = { warmUp: Math.ceil(total / WARM_UP), total };
  const { compiled, warmUp } = await record(newFile, load, counts);
  const perSecond = (ms) => (total * STEPS * 1000) / ms;
  const samples = await alternate(quick ? 1 : 9, {
    bare: async () => perSecond(sum(await timeBare(newFile(), compiled, warmUp))),
    pawl: async () => perSecond(await measurePawl(newFile(), load, counts)),
  });
  const ratio = pairedRatio(samples);
  return {
    what: `runs of ${STEPS} steps, ${count(inFlight)} in flight`,
    pawl: spread(samples.pawl, "steps/s"),
    bare: spread(samples.bare, "steps/s"),
    ratio: percent(ratio),
    target: target === null ? "" : `>= ${percent(target)}`,
    isMet: target === null ? null : ratio >= target,
    note: `${count(total)} runs a round in ${count(compiled.length - warmUp)} commits`,
  };
}

async function record(newFile, load, counts) {
  const files = { pawl: newFile(), bare: newFile() };
  const { store, commits } = recordingStore(files.pawl);
  const pawl = await openPawl(store, steps);
  await load(pawl, counts.warmUp);
  const warmUp = commits.length;
  await load(pawl, counts.total);
  await pawl.close();
  const compiled = compileCommits(commits);
  await timeBare(files.bare, compiled);
  assertSameRows(files.pawl, files.bare);
  return { compiled, warmUp };
}

async function measurePawl(file, load, counts) {
  const pawl = await openPawl(file, steps);
  await load(pawl, counts.warmUp);
  const ms = await elapsed(() => load(pawl, counts.total));
  await pawl.close();
  return ms;
}
