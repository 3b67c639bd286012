// The pulse thread
// Renews a worker's lease from outside the event loop, so that a long synchronous step does not cost the process its runs.
//
//   T1. It renews only while the main thread's beat has moved within the stall limit: a hung process must lose its runs (P26).
//   T2. It publishes when a heartbeat was sent, and only once it is durable (P37).
//   T3. A row that is gone means fenced: it says so and stops. Any other trouble is tried again; the lease runs out by itself.
import { isMainThread, workerData } from "node:worker_threads";
import { systemClock } from "../../base/clock.ts";
import type { PulseTask } from "../pulse/pulse.ts";
import { PulseSignals } from "../pulse/pulse-signals.ts";
import { type Database, loadDriver, type Statement } from "./driver.ts";
import { isBusy } from "./storage-error.ts";
import { COUNT_OTHERS, RENEW } from "./workers.ts";

interface FilePulseTask extends PulseTask {
  readonly path: string;
  readonly synchronous: number;
}

const RETRY_MS = 1;

function pulse(task: FilePulseTask, signals: PulseSignals): void {
  let lastBeats = signals.beats();
  let movedAt = systemClock.monotonic();
  for (let isOver = signals.isToStop; !isOver; isOver = signals.waitForStop(task.everyMs)) {
    const beats = signals.beats();
    if (beats !== lastBeats) movedAt = systemClock.monotonic();
    lastBeats = beats;
    const isStalled = systemClock.monotonic() - movedAt > task.stallMs;
    if (!isStalled && renew(task, signals) === "fenced") return signals.fenced();
  }
}

/** One heartbeat; it is tried until it goes through or the next one is due. */
function renew(task: FilePulseTask, signals: PulseSignals): "renewed" | "fenced" | "failed" {
  const giveUpAt = systemClock.monotonic() + task.everyMs;
  for (;;) {
    const sentAt = systemClock.monotonic();
    try {
      const others = beatOnce(task, sentAt);
      if (others === null) return "fenced";
      signals.confirm(sentAt, others);
      signals.up();
      return "renewed";
    } catch (error) {
      if (!isBusy(error)) forgetDatabase();
      if (!isBusy(error) || systemClock.monotonic() > giveUpAt || signals.waitForStop(RETRY_MS)) return "failed";
    }
  }
}

interface Opened {
  readonly db: Database;
  readonly renew: Statement;
  readonly countOthers: Statement;
}

let opened: Opened | null = null;

/** Returns how many other workers there are, or `null` if this one is gone. */
function beatOnce(task: FilePulseTask, sentAt: number): number | null {
  opened ??= openDatabase(task);
  const { renew, countOthers } = opened;
  // A single statement is a transaction of its own, which a lock held by others fails as a whole.
  const { changes } = renew.run(sentAt, task.worker);
  if (Number(changes) === 0) return null;
  return countOthers.get(task.worker)?.others as number;
}

function openDatabase({ path, synchronous }: FilePulseTask): Opened {
  const db = loadDriver().open(path);
  db.exec(`pragma busy_timeout = 0; pragma synchronous = ${synchronous}; pragma mmap_size = 0`);
  return { db, renew: db.prepare(RENEW), countOthers: db.prepare(COUNT_OTHERS) };
}

// After an error only a new connection is sure to see what is on disk.
function forgetDatabase(): void {
  const db = opened?.db;
  opened = null;
  try {
    db?.close();
  } catch {
    // It is replaced anyway.
  }
}

if (!isMainThread) {
  const task = workerData as FilePulseTask;
  const signals = new PulseSignals(task.memory);
  try {
    pulse(task, signals);
    forgetDatabase();
  } finally {
    signals.done();
  }
}
