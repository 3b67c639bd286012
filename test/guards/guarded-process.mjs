// A process that works on one run with an effect, see guarded.mjs. Its one argument is { store, run, input, dies } in JSON; the result is
// its only line.
import { Pawl, sqliteStore } from "pawl";
import { effect, fate } from "./guarded.mjs";

const { store, run, input, dies } = JSON.parse(process.argv[2]);
fate.dies = dies === "after the effect";
// For a hook of git, which kills in the middle of it.
if (dies === "after the commit") process.env.VICTIM = String(process.pid);
const logger = { debug() {}, info() {}, warn: console.error, error: console.error };
const pawl = await Pawl.open(sqliteStore(store), { workflows: [effect], logger });
const started = await pawl.start(effect, input, { id: run });
console.log(JSON.stringify((await started.result()) ?? null));
await pawl.close();
