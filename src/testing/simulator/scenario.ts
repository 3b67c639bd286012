import type { SpendingLimit } from "./deeds.ts";
import type { Program } from "./program.ts";

/** Everything that decides what happens in a simulation, as plain data: it can be drawn from a seed, shrunk, written down and run again. */
export interface Scenario {
  readonly seed: number;
  readonly settings: Settings;
  readonly processes: readonly ProcessPlan[];
  readonly runs: readonly RunPlan[];
  readonly signals: readonly SignalPlan[];
  /** What people do with runs that are there. */
  readonly operators?: readonly OperatorPlan[];
  readonly bursts?: readonly BurstPlan[];
  readonly faults: readonly Fault[];
  /** The choices of the scheduler, in order, and zeros after them. Without it they follow from the seed. */
  readonly choices?: readonly number[];
}

/** How the engines are configured, and what their surroundings are like. */
export interface Settings {
  readonly leaseMs: number;
  readonly pollMs: number;
  /** Runs in the memory of one worker. */
  readonly concurrency: number;
  readonly lanes: number;
  /** Runs of one worker that go on between two commits. */
  readonly sliceRuns: number;
  /** Which event goes next: mostly the oldest, any, or mostly those of one process. */
  readonly order: "oldest" | "any" | "favourite";
  /** How likely a call is to take its time. */
  readonly slowness: number;
  /** How many hints are lost, from 0 to 1. */
  readonly hintLoss: number;
  /** What a power cut may take: nothing, or the end of what was acknowledged. */
  readonly durability: "power" | "process";
  /** `sqlite`: a real file gets every call that the model gets, and must answer alike. */
  readonly store: "memory" | "sqlite";
  /** How many runs of the workflow may be under way at a time, over all workers. Absent: any number. */
  readonly slots?: number;
}

/** A simulated process. */
export interface ProcessPlan {
  /** The version of the workflow that it works on; `null` for a client. */
  readonly version: "1.0.0" | "1.0.1" | null;
  /** How far its clock is off. */
  readonly skewMs: number;
}

/** A run that somebody starts, and what else is asked about it. */
export interface RunPlan {
  readonly program: Program;
  readonly rounds: number;
  /** It throws in the end. */
  readonly fails: boolean;
  readonly at: number;
  /** The process that starts it. */
  readonly by: number;
  readonly how: "id" | "key" | "plain";
  readonly delayMs: number;
  /** Another process starts it as well. */
  readonly twice: boolean;
  /** Somebody waits for its result. */
  readonly awaited: boolean;
  readonly cancelAt: number | null;
  /** Who cancels it wants what it did undone. */
  readonly compensate?: boolean;
  /** What it may spend, with all runs below it. */
  readonly budget?: SpendingLimit;
}

/** A signal that somebody sends to a run. */
export interface SignalPlan {
  readonly run: number;
  readonly signal: string;
  readonly n: number;
  readonly at: number;
  readonly by: number;
  /** It is sent again with the same id. */
  readonly twice: boolean;
}

/** What an operator does with a run. */
export interface OperatorPlan {
  /** Start: somebody starts the run once more, by its id or key. */
  readonly kind: "retry" | "fork" | "cancel" | "start";
  readonly run: number;
  /** The run itself, what was forked of it last, or its first child. */
  readonly on: "run" | "newest" | "child";
  readonly at: number;
  readonly by: number;
  /** How far into its journal a fork goes, from 0 to 1. */
  readonly where: number;
  /** Whether a fork is asked for before an entry, or before a call. */
  readonly how: "position" | "key";
  /** The fork has an id of its own: asked for again, it is the same fork. */
  readonly isNamed: boolean;
  /** Another operator does the same. */
  readonly twice: boolean;
  /** Who gets no answer leaves it at that: what acts outside must not be retried twice. */
  readonly isCareful?: true;
}

/** Starts that become one run, if they come soon enough after each other. */
export interface BurstPlan {
  readonly waitMs: number;
  /** The longest that the first one is put off. */
  readonly maxMs: number | null;
  /** What its step takes. */
  readonly ms: number;
  readonly starts: readonly { readonly at: number; readonly by: number }[];
}

/** A misfortune. `at` counts the events of the simulation. Each is over after a while. */
export type Fault =
  | { readonly at: number; readonly kind: "crash"; readonly process: number; readonly backAfterMs: number }
  | { readonly at: number; readonly kind: "freeze"; readonly process: number; readonly ms: number }
  /** Calls of one process are refused, or neither sent nor answered until it is over. */
  | {
      readonly at: number;
      readonly kind: "partition";
      readonly process: number;
      readonly ms: number;
      readonly how: "refused" | "stuck";
    }
  /** The store answers nobody. */
  | { readonly at: number; readonly kind: "outage"; readonly ms: number }
  /** The store can be read, but not written to. */
  | { readonly at: number; readonly kind: "disk-full"; readonly ms: number }
  /** The next call fails, and surely did nothing. */
  | { readonly at: number; readonly kind: "refuse" }
  /** The next write is applied, and its answer is lost. */
  | { readonly at: number; readonly kind: "lose-answer" }
  /** The next write arrives so much later. */
  | { readonly at: number; readonly kind: "delay"; readonly ms: number }
  /** All processes die; with durability "process" the last writes are lost, acknowledged or not. */
  | { readonly at: number; readonly kind: "power-cut"; readonly lost: number; readonly backAfterMs: number }
  /** The wall clock is set: that of the whole machine, or what one process takes for the store's time. */
  | { readonly at: number; readonly kind: "clock-step"; readonly process: number | null; readonly ms: number };

export type FaultKind = Fault["kind"];
