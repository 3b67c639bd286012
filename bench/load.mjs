// How the scenarios drive an engine.
import { Pawl } from "pawl";
import { steps } from "./workflows.mjs";

const MORE_THAN_ENOUGH = 4096;

/** Opens an engine for one measurement. Finished runs are kept: the bare loop deletes nothing either. */
export function openPawl(store, workflow, options = {}) {
  return Pawl.open(store, { workflows: [workflow], concurrency: MORE_THAN_ENOUGH, retention: false, ...options });
}

export async function runSteps(pawl, count) {
  const sum = await pawl.run(steps, count);
  if (sum !== (count * (count - 1)) / 2) throw new Error(`a run of ${count} steps gave ${sum}`);
}
