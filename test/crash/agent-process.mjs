// A process that works as one or more workers in directories, for tests that kill it. Its one argument says what to do, in JSON; it prints one JSON object
// a line.
//
//   workers   [{ root, worker, request }], one after the other; without a request, what is there is resumed
//   example   the compiled folder of the planning agent
//   kill      { point, n }: SIGKILL when that point is reached for the n-th time: "disk" is an access that changes something, "begin" and "end" are in a
//             tool, before and after its work, "planning" in the middle of a planning tool and behind it
//   stay      true: after the first access of the disk, say "working" and wait for the end
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { DurableLoop, directoryStore, modelAdapter, plan, scriptedModel } from "pawl/agent";
import { arm, reach } from "./kill-point.mjs";
import { watchPlanning } from "./planning-points.mjs";

const { workers, example, kill, stay = false } = JSON.parse(process.argv[2]);
const { guide, newSession } = await import(join(example, "guide.js"));
const { script } = await import(join(example, "script.js"));
const { tools } = await import(join(example, "tools.js"));

const say = (event, facts = {}) => process.stdout.write(`${JSON.stringify({ event, ...facts })}\n`);
// Before a rename everything written before it is durable, and the next document is there under the name of its draft.
const CHANGES = ["rename", "remove"];
const points = { disk: 0, begin: 0, end: 0, planning: 0 };

arm(kill);
const at = (point) => {
  points[point] += 1;
  reach(point);
};

watchPlanning(() => at("planning"));

/** Each body that is begun is a line of a file that outlives the process. */
const watched = (root) =>
  tools.map((tool) => ({
    ...tool,
    async run(args, info) {
      appendFileSync(join(root, "begun.jsonl"), `${JSON.stringify({ tool: tool.name, args, pid: process.pid })}\n`);
      at("begin");
      const value = await tool.run(args, info);
      at("end");
      return value;
    },
  }));

for (const { root, worker, request } of workers) {
  const store = directoryStore({
    root,
    worker,
    fault: (point) => {
      if (stay) say("working");
      if (CHANGES.includes(point)) at("disk");
    },
  });
  let last = null;
  const loop = new DurableLoop({
    adapter: stay
      ? { evaluate: () => new Promise(() => setInterval(() => {}, 1000)) }
      : modelAdapter(scriptedModel(script), { tools: watched(root) }),
    session: newSession,
    prompt: (given, session) => {
      last = session;
      return guide.bind(given);
    },
    store,
    log: { debug() {}, info() {}, warn: (message) => say("warning", { worker, message }), error() {} },
  });
  try {
    const { text, ending } = await loop.execute(request);
    say("result", { worker, text, ending, plan: last?.query(plan).latest() ?? null, points });
  } catch (error) {
    say("failure", { worker, code: error.code, message: error.message, owner: error.fields?.owner ?? null });
  }
}
