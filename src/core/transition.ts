// The states of a run
// One pure table decides which state may follow which. Stores write what they are told; whoever builds a commit asks here first.
import { isEnd, move, type StateMachine } from "./state-machine.ts";

export const RUN_STATES = [
  "accepted",
  "running",
  "retrying",
  "waiting",
  "compensating",
  "parked",
  "succeeded",
  "failed",
  "cancelled",
] as const;

/** What a run is doing, in the engine's own words. */
export type RunState = (typeof RUN_STATES)[number];

/** What a run is doing, in the words of the public surface. */
export type PublicStatus = "running" | "waiting" | "succeeded" | "failed" | "cancelled";

export const TRANSITIONS: Readonly<Record<RunState, readonly RunState[]>> = {
  accepted: ["running", "parked", "cancelled", "failed"],
  running: ["retrying", "waiting", "compensating", "parked", "succeeded", "failed", "cancelled"],
  retrying: ["running", "parked", "failed", "cancelled"],
  waiting: ["running", "parked", "failed", "cancelled"],
  compensating: ["running", "waiting", "parked", "failed", "cancelled"],
  parked: ["running", "failed", "cancelled"],
  succeeded: [],
  failed: [],
  cancelled: [],
};

export const RUN: StateMachine<RunState> = { name: "run", initial: "accepted", edges: TRANSITIONS };

const PUBLIC: Readonly<Record<RunState, PublicStatus>> = {
  accepted: "running",
  running: "running",
  retrying: "running",
  waiting: "waiting",
  compensating: "running",
  parked: "waiting",
  succeeded: "succeeded",
  failed: "failed",
  cancelled: "cancelled",
};

export function publicStatus(state: RunState): PublicStatus {
  return PUBLIC[state];
}

/** A terminal state never changes (I16). */
export function isTerminal(state: RunState): boolean {
  return isEnd(RUN, state);
}

/** Returns `to` if a run may go there from `from`; staying is always allowed while a run is unfinished. */
export function transition(run: string, from: RunState, to: RunState): RunState {
  return move(RUN, run, from, to);
}
