import { assertSameRows, compileCommits, recordingStore, timeBare } from "../bare.mjs";
import { openPawl, runSteps } from "../load.mjs";
import { alternate, count, elapsed, figure, median, pairedRatio, spread } from "../measure.mjs";
import { steps } from "../workflows.mjs";

/** From `pawl.run` to its result, for a run of one step in an engine that has nothing else to do. */
export async function startLatency({ newFile, quick }) {
  const runs = quick ? 50 : 500;
  const { compiled, warmUp } = await record(newFile, runs);
  const samples = await alternate(quick ? 1 : 9, {
    bare: async () => median([...(await timeBare(newFile(), compiled, warmUp))]) * 1000,
    pawl: async () => median(await timeRuns(newFile(), runs)) * 1000,
  });
  const ratio = pairedRatio(samples);
  return [
    {
      what: "start to result, one step",
      pawl: spread(samples.pawl, "us"),
      bare: spread(samples.bare, "us a commit"),
      ratio: `${ratio.toFixed(2)} commits`,
      target: "<= 3 commits",
      isMet: ratio <= 3,
      note: `medians of ${count(runs)} runs, one at a time; each takes ${figure((compiled.length - warmUp) / runs)} commits`,
    },
  ];
}

async function record(newFile, runs) {
  const files = { pawl: newFile(), bare: newFile() };
  const { store, commits } = recordingStore(files.pawl);
  let warmUp = 0;
  await timeRuns(store, runs, () => {
    warmUp = commits.length;
  });
  const compiled = compileCommits(commits);
  await timeBare(files.bare, compiled);
  assertSameRows(files.pawl, files.bare);
  return { compiled, warmUp };
}

async function timeRuns(store, runs, warm = () => {}) {
  const pawl = await openPawl(store, steps);
  for (let i = 0; i < 4 * runs; i++) await runSteps(pawl, 1);
  warm();
  const samples = [];
  for (let i = 0; i < runs; i++) samples.push(await elapsed(() => runSteps(pawl, 1)));
  await pawl.close();
  return samples;
}
