import { once } from "node:events";
import { copyFileSync, existsSync } from "node:fs";
import { bareWriter, compileCommits, openBare, rowsOf, runNumbers } from "../bare.mjs";
import { nextMessage, startChild } from "../child.mjs";
import { collectGarbage, count, median, spread, times } from "../measure.mjs";

const KILLED = new URL("../children/killed.mjs", import.meta.url);
const FINISHER = new URL("../children/finisher.mjs", import.meta.url);
const STEPS = 10;
const LIMIT_MS = 2000;

/** A process is killed with half of its steps recorded; the clock runs from the start of the next one to the end of the last run. */
export async function restart({ newFile, quick }) {
  const runs = quick ? 100 : 1000;
  const pawl = [];
  const bare = [];
  for (let round = 0; round < (quick ? 1 : 5); round++) {
    const file = newFile();
    await killAtHalf(file, runs);
    const copy = copyOf(file, newFile());
    const { ms, commits } = await finish(file, runs, await unfinished(copy));
    pawl.push(ms);
    bare.push(await timeRest(copy, commits));
  }
  const taken = median(pawl);
  return [
    {
      what: `restart with ${count(runs)} runs in flight`,
      pawl: spread(pawl, "ms"),
      bare: spread(bare, "ms"),
      ratio: times(taken / median(bare)),
      target: `<= ${count(LIMIT_MS)} ms`,
      isMet: taken <= LIMIT_MS,
      note: "from the spawn of the new process, Node's own start included; bare: the rest of the rows, in a process that runs already",
    },
  ];
}

async function killAtHalf(file, runs) {
  const child = startChild(KILLED, { file, runs, steps: STEPS });
  await nextMessage(child);
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** How many runs the killed process has left behind. */
async function unfinished(file) {
  const db = await openBare(file);
  const [{ left }] = rowsOf(db, "select count(*) as left from runs where ended_at is null");
  db.close();
  return left;
}

async function finish(file, runs, left) {
  const start = performance.now();
  const child = startChild(FINISHER, { file, left });
  const gone = once(child, "exit");
  await nextMessage(child);
  const ms = performance.now() - start;
  const commits = await nextMessage(child);
  await gone;
  await assertAllSucceeded(file, runs);
  return { ms, commits };
}

async function assertAllSucceeded(file, runs) {
  const db = await openBare(file);
  const [{ succeeded }] = rowsOf(db, "select count(*) as succeeded from runs where state = 'succeeded'");
  const [{ completed }] = rowsOf(db, "select count(*) as completed from journal where type = 'step.completed'");
  db.close();
  if (succeeded !== runs || completed !== runs * STEPS) {
    throw new Error(`after the restart ${succeeded} of ${runs} runs have succeeded, with ${completed} steps`);
  }
}

function copyOf(file, copy) {
  for (const part of ["", "-wal"]) if (existsSync(file + part)) copyFileSync(file + part, copy + part);
  return copy;
}

async function timeRest(file, commits) {
  const numbers = runNumbers(file);
  const compiled = compileCommits(commits, numbers);
  const db = await openBare(file);
  const write = bareWriter(db, compiled);
  collectGarbage();
  const start = performance.now();
  for (const commit of compiled) write(commit);
  const ms = performance.now() - start;
  db.close();
  return ms;
}
