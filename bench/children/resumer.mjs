// Resumes the one run of each file in turn, after reading its rows the bare way.
import { sqliteStore } from "pawl";
import { openBare } from "../bare.mjs";
import { answer, childArgument } from "../child.mjs";
import { openPawl } from "../load.mjs";
import { resumed } from "../workflows.mjs";

const { files } = childArgument();
const pawl = [];
const bare = [];
for (const file of files) {
  bare.push(await timeRead(file));
  pawl.push(await timeReplay(file));
}
answer({ pawl, bare });

async function timeRead(file) {
  const db = await openBare(file);
  const read = db.prepare("select seq, at, type, key, data, hash from journal where run = ? order by seq");
  const start = performance.now();
  read.all(1);
  const ms = performance.now() - start;
  db.close();
  return ms;
}

/** From the call that claims the run to its first live step, which begins behind a commit of its own. */
async function timeReplay(file) {
  const store = sqliteStore(file);
  let claimedAt = 0;
  let run = null;
  const claim = async (request) => {
    const start = performance.now();
    const claimed = await store.claim(request);
    if (claimed.length > 0) {
      claimedAt = start;
      run = claimed[0].run;
    }
    return claimed;
  };
  const engine = await openPawl({ ...store, claim }, resumed);
  const liveAt = await engine.get(run).result();
  await engine.close();
  return liveAt - claimedAt;
}
