// Puts runs to sleep, through Pawl or as bare rows, and tells what that added to this process. Needs --expose-gc.
import { bareWriter, compileCommits, openBare, recordingStore } from "../bare.mjs";
import { answer, childArgument } from "../child.mjs";
import { closedLoop } from "../closed-loop.mjs";
import { openPawl } from "../load.mjs";
import { elapsed } from "../measure.mjs";
import { sleeper } from "../workflows.mjs";

const IN_FLIGHT = 256;
const MB = 1024 * 1024;
const TEMPLATE = 1000;

const { files, runs, isBare } = childArgument();
answer(await (isBare ? measureBare() : measurePawl()));

async function measurePawl() {
  const pawl = await openPawl(files[0], sleeper);
  // Code and buffers that a first thousand needs are the engine's, not what a sleeping run takes.
  const warming = await measure(() => putToSleep(pawl, TEMPLATE));
  const result = await measure(() => putToSleep(pawl, runs));
  await pawl.close();
  return { ...result, warmMb: warming.addedMb };
}

async function putToSleep(pawl, count) {
  await closedLoop(count, IN_FLIGHT, () => pawl.start(sleeper));
  await pawl.idle();
}

async function measureBare() {
  const commits = await recordTemplate(files[0]);
  const db = await openBare(files[1]);
  const copies = Math.ceil(runs / TEMPLATE);
  const write = bareWriter(db, compileCommits(commits, new Map(), 1));
  let compileMs = 0;
  const { ms, ...added } = await measure(async () => {
    for (let copy = 1; copy <= copies; copy++) {
      let compiled;
      compileMs += await elapsed(() => {
        compiled = compileCommits(commits, new Map(), copy);
      });
      compiled.forEach(write);
    }
  });
  db.close();
  return { ...added, ms: (ms - compileMs) * (runs / (copies * TEMPLATE)) };
}

async function recordTemplate(file) {
  const { store, commits } = recordingStore(file);
  const pawl = await openPawl(store, sleeper);
  await putToSleep(pawl, TEMPLATE);
  const recorded = [...commits];
  await pawl.close();
  return recorded;
}

async function measure(body) {
  const before = memory();
  const ms = await elapsed(body);
  const after = memory();
  return { ms, addedMb: after.rss - before.rss, heapMb: after.heapUsed - before.heapUsed };
}

function memory() {
  globalThis.gc();
  globalThis.gc();
  const { rss, heapUsed } = process.memoryUsage();
  return { rss: rss / MB, heapUsed: heapUsed / MB };
}
