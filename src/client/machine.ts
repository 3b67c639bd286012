// The machine under an engine
// Everything that an engine takes from its process beside the store: turns of the event loop, ids, chance, and who it is. Simulations bring
// their own. It is no option of `Pawl.open`, so that no user has to know of it: it comes along with the options object, unseen.
import { randomBytes } from "node:crypto";
import type { Log } from "../core/context.ts";
import type { Host } from "../core/host.ts";
import { LIMITS } from "../core/limits.ts";
import type { ProcessIdentity } from "../core/store.ts";
import { installGuard } from "../worker/guard.ts";
import { nodeHost } from "../worker/node-host.ts";
import { processIdentity } from "../worker/process-identity.ts";
import { shieldRejections } from "../worker/rejections.ts";
import { consoleLog } from "./console-log.ts";

export interface Machine {
  readonly host: Host;
  /** Runs that go on between two commits. */
  readonly sliceRuns: number;
  /** For ids. */
  randomBytes(count: number): Uint8Array;
  /** For jitter. From 0 up to, not including, 1. */
  random(): number;
  identity(): ProcessIdentity;
  /** What warnings and errors go to without a `logger`. One that is given as an option hears of every run and step besides. */
  readonly log: Log;
  /** Watches over the globals of the process while an engine works in it; the returned function ends that. */
  protect(log: Log): () => void;
}

const nodeMachine: Machine = {
  host: nodeHost,
  sliceRuns: LIMITS.sliceRuns,
  randomBytes,
  // Looked up when it is called: a seed that is put into `Math` later counts too.
  random: () => Math.random(),
  identity: processIdentity,
  log: consoleLog,
  protect(log) {
    const undo = [installGuard(log), shieldRejections()];
    return () => {
      for (const one of undo) one();
    };
  },
};

const machines = new WeakMap<object, Machine>();

/** The same options, for an engine on another machine than this one: `Pawl.open(store, onMachine(options, machine))`. */
export function onMachine<O extends object>(options: O, machine: Partial<Machine>): O {
  const own = { ...options };
  machines.set(own, { ...nodeMachine, ...machine });
  return own;
}

export function machineOf(options: object): Machine {
  return machines.get(options) ?? nodeMachine;
}
