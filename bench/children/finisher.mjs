// Works off what a killed process has left: tells when the last run has ended, then what it wrote.
import { recordingStore } from "../bare.mjs";
import { answer, childArgument } from "../child.mjs";
import { openPawl } from "../load.mjs";
import { steps } from "../workflows.mjs";

const { file, left } = childArgument();
const { store, commits } = recordingStore(file);
let ended = 0;
let tell;
const allEnded = new Promise((resolve) => {
  tell = resolve;
});

const commit = async (request) => {
  const verdicts = await store.commit(request);
  request.runs.forEach((part, i) => {
    if (part.row?.ended && verdicts[i].kind === "applied") ended += 1;
  });
  if (ended >= left) tell();
  return verdicts;
};

const pawl = await openPawl({ ...store, commit }, steps);
await allEnded;
process.send("finished");
await pawl.close();
answer(commits);
