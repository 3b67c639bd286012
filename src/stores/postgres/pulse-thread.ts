// The pulse thread
// Renews a worker's lease from outside the event loop, so that a long synchronous step does not cost the process its runs.
//
//   T1. It renews only while the main thread's beat has moved within the stall limit: a hung process must lose its runs (P26).
//   T2. It publishes when a heartbeat was sent, and only once it was answered (P37).
//   T3. A row that is gone means fenced: it says so and stops. Any other trouble is tried again; the lease runs out by itself.
import { isMainThread, workerData } from "node:worker_threads";
import { systemClock } from "../../base/clock.ts";
import type { PulseTask } from "../pulse/pulse.ts";
import { PulseSignals } from "../pulse/pulse-signals.ts";
import type { Link } from "./link.ts";
import { linkTo } from "./links.ts";

/** A heartbeat that takes longer than until the next one is given up, but not sooner than this. */
const SHORTEST_LIMIT_MS = 1000;

export interface ServerPulseTask extends PulseTask {
  readonly url: string;
  readonly heartbeat: string;
}

async function pulse(task: ServerPulseTask, signals: PulseSignals, link: Link): Promise<void> {
  let lastBeats = signals.beats();
  let movedAt = systemClock.monotonic();
  for (let isOver = signals.isToStop; !isOver; isOver = await signals.stopWithin(task.everyMs)) {
    const beats = signals.beats();
    if (beats !== lastBeats) movedAt = systemClock.monotonic();
    lastBeats = beats;
    const isStalled = systemClock.monotonic() - movedAt > task.stallMs;
    if (!isStalled && (await isFenced(task, signals, link))) return signals.fenced();
  }
}

/** One heartbeat; what goes wrong with it is tried again with the next. */
async function isFenced({ worker, heartbeat }: ServerPulseTask, signals: PulseSignals, link: Link): Promise<boolean> {
  const sentAt = systemClock.monotonic();
  try {
    const [row] = await link.query(heartbeat, [worker, null]);
    if (row?.["alive"] !== true) return true;
    signals.confirm(sentAt, Number(row["others"]));
    signals.up();
  } catch {}
  return false;
}

if (!isMainThread) {
  const task = workerData as ServerPulseTask;
  const signals = new PulseSignals(task.memory);
  const link = linkTo(task.url, Math.max(task.everyMs, SHORTEST_LIMIT_MS));
  try {
    await pulse(task, signals, link);
    await link.close();
  } finally {
    signals.done();
  }
}
