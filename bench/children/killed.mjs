// Starts runs and stands still at the moment when half of their steps are on disk, so that the parent can kill it just there.
import { sqliteStore } from "pawl";
import { childArgument } from "../child.mjs";
import { openPawl } from "../load.mjs";
import { steps } from "../workflows.mjs";

const { file, runs, steps: count } = childArgument();
const store = sqliteStore(file);
let recorded = 0;

const commit = async (request) => {
  const verdicts = await store.commit(request);
  for (const { entries } of request.runs) recorded += entries.filter((entry) => entry.type === "step.completed").length;
  if (recorded >= (runs * count) / 2) {
    process.send("half");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }
  return verdicts;
};

const pawl = await openPawl({ ...store, commit }, steps);
await Promise.all(Array.from({ length: runs }, () => pawl.run(steps, count)));
