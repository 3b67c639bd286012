// A process that works as one or more workers in directories, for tests that kill it. Its one argument says what to do, in JSON; it prints one JSON object
// a line.
//
//   workers   [{ root, worker, request, kill }], one after the other; without a request, what is there is resumed. `kill` is { point, n }: its life ends when
//             that point is reached for the n-th time, and with the last of them the process, by SIGKILL, see kill-point.mjs. "disk" is an access that
//             changes something, "begin" and "end" are in a tool, before and after its work, "planning" in the middle of a planning tool and behind it
//   example   the compiled folder of the planning agent
//   stay      true: after the first access of the disk, say "working" and wait for the end
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { DurableLoop, directoryStore, modelAdapter, plan, scriptedModel } from "pawl/agent";
import { Life, reach } from "./kill-point.mjs";
import "./mortal-disk.mjs";
import { watchPlanning } from "./planning-points.mjs";

const { workers, example, stay = false } = JSON.parse(process.argv[2]);
const { guide, newSession } = await import(join(example, "guide.js"));
const { script } = await import(join(example, "script.js"));
const { tools } = await import(join(example, "tools.js"));

const say = (event, facts = {}) => process.stdout.write(`${JSON.stringify({ event, ...facts })}\n`);
// Before a rename everything written before it is durable, and the next document is there under the name of its draft.
const CHANGES = ["rename", "remove"];

/** All are there before the first one begins. */
const lives = workers.map(({ kill }) => new Life(kill));

/** Never goes on if the life has come to its end. Nothing is thrown, which would be cleaned up after. */
const at = async (life, point) => {
  if (!life.reach(point)) await new Promise(() => {});
};

// It cannot wait there: the next access to the disk does, and every tool begins with one.
watchPlanning(() => {
  try {
    reach("planning");
  } catch {}
});

/** Each body that is begun is a line of a file that outlives the process. */
const watched = (root, life) =>
  tools.map((tool) => ({
    ...tool,
    async run(args, info) {
      appendFileSync(join(root, "begun.jsonl"), `${JSON.stringify({ tool: tool.name, args, pid: process.pid })}\n`);
      await at(life, "begin");
      const value = await tool.run(args, info);
      await at(life, "end");
      return value;
    },
  }));

/** A life that has halted waits for nothing, and nobody for it: its store, if it were not kept, would be collected, and its lock closed. */
const stores = [];

async function work({ root, worker, request }, life) {
  const store = directoryStore({
    root,
    worker,
    fault: (point) => {
      if (stay) say("working");
      // Where it was the last point, the access that comes next is never over.
      if (CHANGES.includes(point)) life.reach("disk");
    },
  });
  stores.push(store);
  let last = null;
  const loop = new DurableLoop({
    adapter: stay
      ? { evaluate: () => new Promise(() => setInterval(() => {}, 1000)) }
      : modelAdapter(scriptedModel(script), { tools: watched(root, life) }),
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
    say("result", { worker, text, ending, plan: last?.query(plan).latest() ?? null, points: life.reached });
  } catch (error) {
    say("failure", { worker, code: error.code, message: error.message, owner: error.fields?.owner ?? null });
  }
}

for (const [index, life] of lives.entries()) {
  const worker = workers[index];
  const over = life.within(() => work(worker, life)).then(() => worker.kill !== undefined && life.end());
  await Promise.race([over, life.halted]);
}
