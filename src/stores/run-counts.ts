import type { RunCounts } from "../core/run-query.ts";
import { RUN_STATES, type RunState } from "../core/transition.ts";

/** The answer to a count, from what was found in each state: more than the bound, where there was more. */
export function countsOf(found: ReadonlyMap<RunState, number>, bound: number): RunCounts {
  const counts = RUN_STATES.map((state) => [state, Math.min(found.get(state) ?? 0, bound)] as const);
  return {
    counts: Object.fromEntries(counts) as Record<RunState, number>,
    atLeast: [...found.values()].some((count) => count > bound),
  };
}
