import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import type { Pulse } from "../../core/store.ts";
import { PulseSignals, pulseMemory } from "./pulse-signals.ts";
import type { PulseTask } from "./pulse-thread.ts";

export interface CountingPulse extends Pulse {
  /** How many other workers the last heartbeat saw. */
  others(): number;
}

/** Starts the thread that renews a worker's lease. It never keeps the process alive. */
export function startPulse(task: Omit<PulseTask, "memory">, confirmedAt: number): CountingPulse {
  const memory = pulseMemory(confirmedAt);
  const signals = new PulseSignals(memory);
  // By its name in package.json, so that sources under test use the built thread as well: Node 20 runs no TypeScript.
  const file = createRequire(import.meta.url).resolve("#pulse");
  const thread = new Worker(file, { workerData: { ...task, memory } satisfies PulseTask });
  thread.unref();
  // A thread that dies renews nothing, and the lease runs out: the worker notices by that.
  thread.on("error", () => {});
  const exited = new Promise<void>((resolve) => thread.once("exit", () => resolve()));
  return {
    confirmedAt: () => signals.confirmedAt(),
    others: () => signals.others(),
    beat: () => signals.beat(),
    stop() {
      thread.ref();
      signals.stop();
      return exited;
    },
  };
}
