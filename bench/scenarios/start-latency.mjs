import { assertSameRows, bareWriter, compileCommits, openBare, recordingStore, timeBare } from "../bare.mjs";
import { openPawl, runSteps } from "../load.mjs";
import { collectGarbage, count, elapsed, figure, median, pairedRatio, spread } from "../measure.mjs";
import { steps } from "../workflows.mjs";

const RUNS_A_ROUND = 25;

/**
 * From `pawl.run` to its result, for a run of one step in an engine that has nothing else to do. What is compared takes less than a
 * millisecond, and the speed of a machine changes within seconds: a round is a few runs, right after the bare commits of as many.
 */
export async function startLatency({ newFile, quick }) {
  const [rounds, warmUp] = quick ? [2, 2] : [120, 200];
  const { commits, perRun } = await record(newFile, (rounds + warmUp) * RUNS_A_ROUND);
  const db = await openBare(newFile());
  const write = bareWriter(db, commits);
  const pawl = await openPawl(newFile(), steps);
  collectGarbage();
  const samples = { bare: [], pawl: [] };
  for (let round = 0; round < warmUp + rounds; round++) {
    const bare = await timeEach(RUNS_A_ROUND * perRun, (i) => write(commits[round * RUNS_A_ROUND * perRun + i]));
    const runs = await timeEach(RUNS_A_ROUND, () => runSteps(pawl, 1));
    if (round < warmUp) continue;
    samples.bare.push(median(bare) * 1000);
    samples.pawl.push(median(runs) * 1000);
  }
  await pawl.close();
  db.close();
  const ratio = pairedRatio(samples);
  return [
    {
      what: "start to result, one step",
      pawl: spread(samples.pawl, "us"),
      bare: spread(samples.bare, "us a commit"),
      ratio: `${ratio.toFixed(2)} commits`,
      target: "<= 3 commits",
      isMet: ratio <= 3,
      note: `${count(rounds)} rounds of ${RUNS_A_ROUND} runs, one at a time; each takes ${figure(perRun)} commits`,
    },
  ];
}

async function record(newFile, runs) {
  const files = { pawl: newFile(), bare: newFile() };
  const { store, commits } = recordingStore(files.pawl);
  const pawl = await openPawl(store, steps);
  for (let i = 0; i < runs; i++) await runSteps(pawl, 1);
  await pawl.close();
  const compiled = compileCommits(commits);
  await timeBare(files.bare, compiled);
  assertSameRows(files.pawl, files.bare);
  return { commits: compiled, perRun: compiled.length / runs };
}

async function timeEach(times, body) {
  const samples = [];
  for (let i = 0; i < times; i++) samples.push(await elapsed(() => body(i)));
  return samples;
}
