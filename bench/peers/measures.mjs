// The four things that are done to every peer. Each calls `record` with the name of a row and a sample, and `remark` with what a reader should
// know about it; `attempt` goes on with the next row where one fails.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { count, median } from "../measure.mjs";
import { openPlace, startWorker } from "./driver.mjs";

const STEPS = 10;
const LEVELS = [1, 16, 128, 1024];
const SLACK_MS = 90_000;
const LONGEST_LEVEL_S = 40;
// V8 keeps what its youngest objects have ever needed, which on a quick engine is more than all that sleeps.
const SMALL_NURSERY = "--max-semi-space-size=2";

const FULL = {
  warmUp: { runs: 256, inFlight: 16, limitMs: 1500 },
  levels: { 1: 200, 16: 1000, 128: 4096, 1024: 8192 },
  limitMs: 2500,
  longSteps: 1000,
  latencies: { runs: 300, limitMs: 2000 },
  crash: { runs: 1000, steps: STEPS },
  resumeSteps: 10_000,
  resumeLimitMs: 45_000,
  sleepers: { loadMs: 3000, warmUp: 500, runs: 10_000, limitMs: 15_000, settleMs: 1500 },
};
const QUICK = {
  warmUp: { runs: 16, inFlight: 16, limitMs: 300 },
  levels: { 1: 10, 16: 32, 128: 128, 1024: 128 },
  limitMs: 500,
  longSteps: 100,
  latencies: { runs: 20, limitMs: 500 },
  crash: { runs: 100, steps: STEPS },
  resumeSteps: 500,
  resumeLimitMs: 10_000,
  sleepers: { loadMs: 500, warmUp: 50, runs: 500, limitMs: 2000, settleMs: 500 },
};

export function plan(isQuick) {
  return isQuick ? QUICK : FULL;
}

/** Rows with steps per second, and from start to result, each in a process that is told how many runs to expect. */
export async function rates(peer, { sizes, bench, record, remark, attempt }) {
  await withPlace(peer, bench, async (home) => {
    const warmed = async (inFlight, body) => {
      const worker = await startWorker(home, bench.node, { inFlight });
      const ask = (method, argument) => worker.ask(method, argument, (argument.limitMs ?? 0) + SLACK_MS);
      await ask("load", { ...sizes.warmUp, inFlight: Math.min(inFlight, sizes.warmUp.inFlight), steps: STEPS });
      await body(ask);
      await worker.close();
    };
    let rate = Number.POSITIVE_INFINITY;
    for (const inFlight of LEVELS) {
      const wanted = sizes.levels[inFlight];
      const runs = Math.min(wanted, Math.ceil((rate * LONGEST_LEVEL_S) / STEPS));
      await attempt(`rate-${inFlight}`, () =>
        warmed(inFlight, async (ask) => {
          const load = await ask("load", { runs, steps: STEPS, inFlight, limitMs: sizes.limitMs });
          rate = (load.runs * STEPS * 1000) / load.ms;
          record(`rate-${inFlight}`, rate);
          if (load.runs < inFlight) remark(`rate-${inFlight}`, `only ${count(load.runs)} runs, for want of time`);
        }),
      );
    }
    await attempt("long", () =>
      warmed(1, async (ask) => {
        const long = await ask("load", { runs: 1, steps: sizes.longSteps, inFlight: 1 });
        record("long", (sizes.longSteps * 1000) / long.ms);
        record("latency", median(await ask("latencies", sizes.latencies)));
      }),
    );
  });
}

/** SIGKILL with many runs in flight, then a new process until all results are there. */
export async function crash(peer, { sizes, bench, record }) {
  await withPlace(peer, bench, async (home) => {
    const inFlight = sizes.crash.runs;
    const ledger = join(home.place.folder, "ledger");
    const victim = await startWorker(home, bench.node, { ledger, inFlight });
    const half = victim.answer("half", 2 * SLACK_MS);
    const [tokens] = await Promise.all([victim.ask("startToHalf", sizes.crash, SLACK_MS), half]);
    await victim.kill();
    const start = performance.now();
    const worker = await startWorker(home, bench.node, { ledger, inFlight });
    await worker.ask("results", tokens, SLACK_MS);
    const ms = performance.now() - start;
    await worker.close();
    record("recovery", ms / 1000);
    record("repeated", repeatedSteps(ledger, sizes.crash));
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
export async function resume(peer, { sizes, bench, record, remark, rounds }) {
  const steps = Math.min(sizes.resumeSteps, peer.longest?.steps ?? sizes.resumeSteps);
  const gate = steps - 1;
  if (steps < sizes.resumeSteps) remark("resume", `a run of ${count(steps)} steps: ${peer.longest.why}`);
  await withPlace(peer, bench, async (home) => {
    const options = { gate, inFlight: 1 };
    const first = await startWorker(home, bench.node, options);
    await first.ask("startLong", { steps }, SLACK_MS);
    await first.ask("waitForGate", null, sizes.resumeLimitMs + SLACK_MS);
    await first.kill();
    for (let i = 0; i < rounds; i++) {
      const start = performance.now();
      const worker = await startWorker(home, bench.node, options);
      await worker.ask("waitForGate", null, SLACK_MS);
      record("resume", (performance.now() - start) / 1000);
      await worker.kill();
    }
  });
}

/** What sleeping runs add to the memory of the worker process, and of the peer's own server where it has one. */
export async function sleeping(peer, { sizes, bench, record }) {
  await withPlace(peer, bench, async (home) => {
    const { loadMs, warmUp, runs, limitMs, settleMs } = sizes.sleepers;
    const inFlight = 64;
    const worker = await startWorker(home, bench.node, { inFlight }, [SMALL_NURSERY]);
    const sleep = (count) =>
      worker.ask("sleepers", { runs: count, inFlight, limitMs, settleMs }, limitMs + settleMs + SLACK_MS);
    const rss = () => worker.ask("memory", null, SLACK_MS);
    // A heap grows to what the work needs and stays there: that is not the memory of those who sleep.
    const load = { runs: Number.MAX_SAFE_INTEGER, steps: STEPS, inFlight, limitMs: loadMs };
    await worker.ask("load", load, loadMs + SLACK_MS);
    await sleep(warmUp);
    const before = { worker: await rss(), server: serverMemory(home) };
    const slept = await sleep(runs);
    const after = { worker: await rss(), server: serverMemory(home) };
    await worker.kill();
    if (before.server !== null) {
      const added = (after.server - before.server) / slept.runs / 1024;
      record("sleeping-server", added);
    }
    record("sleeping", (after.worker - before.worker) / slept.runs / 1024);
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
    await body(home);
  } finally {
    for (const worker of home.workers) await worker.kill();
    await home.close();
  }
}
