// The four things that are done to every peer. Each takes a peer and gives samples by the name of their row; what a reader should know about the
// circumstances goes to `remark`.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { median } from "../measure.mjs";
import { openPlace, startWorker } from "./driver.mjs";

const STEPS = 10;
const LEVELS = [1, 16, 128, 1024];
const SLACK_MS = 90_000;

const FULL = {
  warmUp: { runs: 256, inFlight: 16, limitMs: 1500 },
  levels: { 1: 200, 16: 1000, 128: 4096, 1024: 8192 },
  limitMs: 2500,
  longSteps: 1000,
  latencies: { runs: 300, limitMs: 2000 },
  crash: { runs: 1000, steps: STEPS },
  resumeSteps: 10_000,
  resumeLimitMs: 45_000,
  sleepers: { warmUp: 500, runs: 10_000, limitMs: 15_000, settleMs: 1500 },
};
const QUICK = {
  warmUp: { runs: 16, inFlight: 16, limitMs: 300 },
  levels: { 1: 10, 16: 64, 128: 256, 1024: 1024 },
  limitMs: 500,
  longSteps: 100,
  latencies: { runs: 20, limitMs: 500 },
  crash: { runs: 100, steps: STEPS },
  resumeSteps: 500,
  resumeLimitMs: 10_000,
  sleepers: { warmUp: 50, runs: 500, limitMs: 2000, settleMs: 500 },
};

export function plan(isQuick) {
  return isQuick ? QUICK : FULL;
}

/** Rows with steps per second, and from start to result, in one warm process. */
export async function rates(peer, { sizes, bench, remark }) {
  return withPlace(peer, bench, async (home) => {
    const worker = await startWorker(home, bench.node);
    const ask = (method, argument) => worker.ask(method, argument, (argument.limitMs ?? 0) + SLACK_MS);
    const samples = {};
    await ask("load", { ...sizes.warmUp, steps: STEPS });
    for (const inFlight of LEVELS) {
      const runs = sizes.levels[inFlight];
      const load = await ask("load", { runs, steps: STEPS, inFlight, limitMs: sizes.limitMs });
      if (load.runs < runs) remark(`rate-${inFlight}`, `${load.runs} of ${runs} runs within the time`);
      samples[`rate-${inFlight}`] = (load.runs * STEPS * 1000) / load.ms;
    }
    const long = await ask("load", { runs: 1, steps: sizes.longSteps, inFlight: 1 });
    samples.long = (sizes.longSteps * 1000) / long.ms;
    samples.latency = median(await ask("latencies", sizes.latencies));
    await worker.close();
    return samples;
  });
}

/** SIGKILL with many runs in flight, then a new process until all results are there. */
export async function crash(peer, { sizes, bench }) {
  return withPlace(peer, bench, async (home) => {
    const ledger = join(home.place.folder, "ledger");
    const victim = await startWorker(home, bench.node, { ledger });
    const half = victim.answer("half", 2 * SLACK_MS);
    const [tokens] = await Promise.all([victim.ask("startToHalf", sizes.crash, SLACK_MS), half]);
    await victim.kill();
    const start = performance.now();
    const worker = await startWorker(home, bench.node, { ledger });
    await worker.ask("results", tokens, SLACK_MS);
    const ms = performance.now() - start;
    await worker.close();
    return { recovery: ms / 1000, repeated: repeatedSteps(ledger, sizes.crash) };
  });
}

/** How many steps were begun more than once. A step that was never begun shows a run that was not really finished. */
function repeatedSteps(ledger, { runs, steps }) {
  const lines = readFileSync(ledger, "utf8").trimEnd().split("\n");
  const begun = new Set(lines).size;
  if (begun !== runs * steps) throw new Error(`${begun} of ${runs * steps} steps were run, though all runs have ended`);
  return lines.length - begun;
}

/** A run that stands at its last step is killed; from the start of a new process until that step begins again. */
export async function resume(peer, { sizes, bench, remark, rounds }) {
  const steps = Math.min(sizes.resumeSteps, peer.maxSteps ?? sizes.resumeSteps);
  const gate = steps - 1;
  if (steps < sizes.resumeSteps) remark("resume", `${steps} steps: it allows no more`);
  return withPlace(peer, bench, async (home) => {
    const first = await startWorker(home, bench.node, { gate });
    await first.ask("startLong", { steps }, SLACK_MS);
    await first.ask("waitForGate", null, sizes.resumeLimitMs + SLACK_MS);
    await first.kill();
    const samples = [];
    for (let i = 0; i < rounds; i++) {
      const start = performance.now();
      const worker = await startWorker(home, bench.node, { gate });
      await worker.ask("waitForGate", null, SLACK_MS);
      samples.push((performance.now() - start) / 1000);
      await worker.kill();
    }
    return { resume: samples };
  });
}

/** What sleeping runs add to the memory of the worker process, and of the peer's own server where it has one. */
export async function sleeping(peer, { sizes, bench, remark }) {
  return withPlace(peer, bench, async (home) => {
    const { warmUp, runs, limitMs, settleMs } = sizes.sleepers;
    const worker = await startWorker(home, bench.node);
    const sleep = (count) =>
      worker.ask("sleepers", { runs: count, inFlight: 64, limitMs, settleMs }, limitMs + settleMs + SLACK_MS);
    const rss = () => worker.ask("memory", null, SLACK_MS);
    await sleep(warmUp);
    const before = { worker: await rss(), server: serverMemory(home) };
    const slept = await sleep(runs);
    const after = { worker: await rss(), server: serverMemory(home) };
    await worker.kill();
    if (slept.runs < runs) remark("sleeping", `${slept.runs} of ${runs} runs within the time`);
    if (before.server !== null) {
      const added = (after.server - before.server) / slept.runs / 1024;
      remark("sleeping", `its server took ${added.toFixed(1)} KB more per run`);
    }
    return { sleeping: (after.worker - before.worker) / slept.runs / 1024 };
  });
}

function serverMemory({ serverPid }) {
  if (serverPid === null || process.platform !== "linux") return null;
  const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${serverPid}/status`, "utf8"));
  return Number(kilobytes) * 1024;
}

async function withPlace(peer, bench, body) {
  const home = await openPlace(peer, bench);
  try {
    return await body(home);
  } finally {
    for (const worker of home.workers) await worker.kill();
    await home.close();
  }
}
