import { Pawl, postgresStore } from "pawl";
import { answer, childArgument } from "../child.mjs";
import { resumed } from "../workflows.mjs";

const { url, schema, run } = childArgument();
const pawl = await Pawl.open(postgresStore(url, { schema }), { workflows: [resumed], retention: false });
// A run that waits is forked where it stands: the copy has the whole journal, and nobody has it in memory.
const fork = await pawl.fork(run, { at: (await pawl.get(run).journal()).length });
await pawl.idle();
const start = performance.now();
await fork.signal("go");
const stepped = await fork.result();
answer({ ms: stepped - start });
await pawl.close();
