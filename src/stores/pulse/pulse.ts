import { Worker } from "node:worker_threads";
import type { Pulse } from "../../core/store.ts";
import { type PulseMemory, PulseSignals, pulseMemory } from "./pulse-signals.ts";

/** What every pulse thread is told; a store adds how it is reached. */
export interface PulseTask {
  readonly worker: string;
  readonly everyMs: number;
  readonly stallMs: number;
  readonly memory: PulseMemory;
}

export interface CountingPulse extends Pulse {
  /** How many other workers the last heartbeat saw. */
  others(): number;
}

export interface PulseOptions {
  /** When the worker's registration was sent. */
  readonly confirmedAt: number;
  /** One heartbeat from the main thread, for when there is no thread, or none yet. */
  readonly beatHere: (signals: PulseSignals) => void;
  /** The thread's file; see `ownFile`. */
  readonly file: () => string;
}

/** How long the exit of the process waits for a thread; a disk that hangs must not hang it. */
const EXIT_WAIT_MS = 1000;

/**
 * Starts the thread that renews a worker's lease. It never keeps the process alive. Where there can be no thread, or it dies
 * (a bundle without the file, no memory), each beat of the main loop is a heartbeat instead. So it is until the thread has renewed
 * the lease once: on a busy machine it may take longer to start than a short lease lasts, and every new incarnation starts another.
 */
export function startPulse(
  task: Omit<PulseTask, "memory">,
  { confirmedAt, beatHere, file }: PulseOptions,
): CountingPulse {
  const memory = pulseMemory(confirmedAt);
  const signals = new PulseSignals(memory);
  const thread = startThread({ ...task, memory }, file);
  let isAlive = thread !== null;
  if (isAlive) stopAtExit(signals);
  thread?.on("error", () => {
    isAlive = false;
  });
  const exited = new Promise<void>((resolve) => {
    if (thread === null) resolve();
    else thread.once("exit", () => resolve());
  }).then(() => void running.delete(signals));
  return {
    confirmedAt: () => signals.confirmedAt(),
    others: () => signals.others(),
    beat() {
      signals.beat();
      if (!isAlive || !signals.isUp) beatHere(signals);
    },
    stop() {
      isAlive = true;
      thread?.ref();
      signals.stop();
      return exited;
    },
  };
}

const running = new Set<PulseSignals>();

/**
 * Node ends threads wherever they are when the process exits, and one that is inside SQLite then takes the whole process down
 * with it (the package aborts). So they are asked to stop first, and waited for.
 */
function stopAtExit(signals: PulseSignals): void {
  if (!isWatchingExit) process.on("exit", stopAll);
  isWatchingExit = true;
  running.add(signals);
}

let isWatchingExit = false;

function stopAll(): void {
  for (const signals of running) signals.stop();
  for (const signals of running) signals.waitForDone(EXIT_WAIT_MS);
}

function startThread(workerData: PulseTask, file: () => string): Worker | null {
  try {
    // The process's own flags are not for it: with some of them, such as --eval, a thread cannot start.
    const thread = new Worker(file(), { name: "pawl-pulse", workerData, execArgv: [] });
    thread.unref();
    return thread;
  } catch {
    return null;
  }
}
