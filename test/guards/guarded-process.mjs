// A process that works on runs with an effect each, see guarded.mjs. Its one argument is { store, inputs, dies } in JSON; each result is a line.
import { Pawl, sqliteStore } from "pawl";
import { effect, fate } from "./guarded.mjs";

const { store, inputs, dies } = JSON.parse(process.argv[2]);
if (dies === "after the effects") fate.after = inputs.length;
// For a hook of git, which kills in the middle of it.
if (dies === "after the commit") process.env.VICTIM = String(process.pid);
const logger = { debug() {}, info() {}, warn: console.error, error: console.error };
const pawl = await Pawl.open(sqliteStore(store), { workflows: [effect], logger });
const live = async (input) => {
  const run = await pawl.start(effect, input, { id: input.name });
  console.log(JSON.stringify((await run.result()) ?? null));
};
await Promise.all(inputs.map(live));
await pawl.close();
