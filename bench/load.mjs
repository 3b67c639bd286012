// How the scenarios drive an engine.
import { Pawl } from "pawl";
import { steps } from "./workflows.mjs";

const MORE_THAN_ENOUGH = 4096;

/** Opens an engine for one measurement. Finished runs are kept: the bare loop deletes nothing either. */
export function openPawl(store, workflow, options = {}) {
  return Pawl.open(store, { workflows: [workflow], concurrency: MORE_THAN_ENOUGH, retention: false, ...options });
}

/** Calls `start` `total` times, at most `inFlight` of them unfinished at any moment. */
export async function closedLoop(total, inFlight, start) {
  let started = 0;
  const lane = async () => {
    while (started < total) {
      started += 1;
      await start();
    }
  };
  await Promise.all(Array.from({ length: Math.min(total, inFlight) }, lane));
}

export async function runSteps(pawl, count) {
  const sum = await pawl.run(steps, count);
  if (sum !== (count * (count - 1)) / 2) throw new Error(`a run of ${count} steps gave ${sum}`);
}
