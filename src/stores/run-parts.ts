// A filter as questions that each have an index: one for each state, and for each workflow of those that are asked for with their states.
import type { RunFilter } from "../core/run-query.ts";
import type { RunState } from "../core/transition.ts";

export interface RunPart {
  readonly workflow: string | null;
  readonly state: RunState | null;
}

/** No run fits two of them; a run fits the filter if it fits one of them and all else that the filter asks for. */
export function partsOf({ workflow: only, states, among }: RunFilter): RunPart[] {
  const workflow = only ?? null;
  const isAsked = (state: RunState) => states === undefined || states.includes(state);
  if (among === undefined) {
    if (states === undefined) return [{ workflow, state: null }];
    return [...new Set(states)].map((state) => ({ workflow, state }));
  }
  const parts = new Map<string, RunPart>();
  for (const one of among)
    if (workflow === null || one.workflow === workflow)
      for (const state of one.states.filter(isAsked))
        parts.set(`${state}/${one.workflow}`, { workflow: one.workflow, state });
  return [...parts.values()];
}

/** Whether workflows and states are all that is asked for. */
export function isPlain({ tag, parent, slot, search, createdAfter, createdBefore }: RunFilter): boolean {
  return [tag, parent, slot, search, createdAfter, createdBefore].every((one) => one === undefined);
}
