// What a long conversation costs: npm run bench:agents [-- --rounds 1000]
// An agent chats for so many rounds, each with a tool call, on SQLite. Prints how its journal grows, and how long a new process takes to resume it. Exits
// with 1 if the journal does not grow in proportion to the rounds, or resuming takes longer than a second.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Pawl, sqliteStore } from "pawl";
import { agent, callTools, prompt, say, scriptedModel, section, tool } from "pawl/agent";
import { readOptions } from "../scripts/read-options.mjs";

const RESUME_GOAL_MS = 1000;
/** How much more the last quarter of the rounds may take than the first: numbers get longer, nothing else does. */
const GROWTH_GOAL = 1.05;

const values = readOptions(import.meta.url, {
  rounds: { type: "string", default: "1000" },
  resume: { type: "string" },
});
const rounds = Number(values.rounds);

const chat = prompt({
  namespace: "bench",
  key: "chat",
  sections: [section({ title: "Task", key: "task", body: "Answer one question after the other." })],
});
const look = tool({
  name: "look",
  description: "Looks something up.",
  class: "read",
  input: { jsonSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } },
  run: ({ n }) => `Entry ${n}: ${"a line of text that says something about it. ".repeat(5)}`,
});
/** The run waits here for somebody, so that another process has to take it up. */
const finish = tool({
  name: "finish",
  description: "Ends the chat.",
  class: "write",
  idempotent: true,
  approval: { approvers: ["ann"] },
  input: { jsonSchema: { type: "object" } },
  run: () => "The chat is over.",
});
const model = scriptedModel((_, round) => {
  if (round > rounds + 1) return say("That was all.");
  const call = round <= rounds ? callTools({ look: { n: round } }) : callTools({ finish: {} });
  return { ...call, content: [...say(`Let me see to question ${round}. `.repeat(4)).content, ...call.content] };
});
const chatter = agent({
  name: "chatter",
  model,
  tools: [look, finish],
  maxRounds: rounds + 10,
  prompt: () => chat.bind({}),
});

if (values.resume !== undefined) await resume(values.resume);
else await main();

async function main() {
  const folder = mkdtempSync(join(tmpdir(), "pawl-bench-agents-"));
  const file = join(folder, "pawl.db");
  try {
    const begun = performance.now();
    const pawl = await Pawl.open(file, { workflows: [chatter], durability: "process" });
    await pawl.start(chatter, undefined, { id: "chat" });
    await pawl.idle();
    await pawl.close();
    console.log(`${rounds} rounds live: ${((performance.now() - begun) / 1000).toFixed(2)} s`);
    const isLinear = await growth(file);
    const args = [fileURLToPath(import.meta.url), "--rounds", String(rounds), "--resume", file];
    const child = spawnSync(process.execPath, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
    const { ms, cpuMs, requests } = JSON.parse(child.stdout);
    const isFast = ms <= RESUME_GOAL_MS;
    console.log(
      `resumed and finished in ${ms.toFixed(0)} ms (${cpuMs.toFixed(0)} ms of processor time), with ${requests} model call(s) (goal ${RESUME_GOAL_MS} ms: ${isFast ? "met" : "missed"})`,
    );
    process.exitCode = isLinear && isFast && requests === 1 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Bytes of the journal, by quarters of the rounds. */
async function growth(file) {
  const store = sqliteStore(file);
  await store.open();
  const entries = await store.journal("chat");
  await store.close();
  const quarters = [0, 0, 0, 0];
  let round = 0;
  for (const { type, key, data } of entries) {
    if (type === "step.started" && /^model(#\d+)?$/.test(key ?? "")) round++;
    const quarter = Math.min(3, Math.floor(((round - 1) * 4) / rounds));
    if (round >= 1 && round <= rounds) quarters[quarter] += data === null ? 0 : Buffer.byteLength(data);
  }
  const perRound = quarters.map((bytes) => Math.round((bytes * 4) / rounds));
  const ratio = quarters[3] / quarters[0];
  const isLinear = ratio <= GROWTH_GOAL;
  console.log(
    `journal: ${entries.length} entries, ${perRound.join(", ")} bytes per round in its four quarters; the last is ${ratio.toFixed(3)} of the first ` +
      `(goal ${GROWTH_GOAL}: ${isLinear ? "met" : "missed"})`,
  );
  return isLinear;
}

/** From the decision that it waits for to its result: claim, replay of all rounds, the tool and one answer. */
async function resume(file) {
  const pawl = await Pawl.open(file, { workflows: [chatter], durability: "process" });
  const [open] = (await pawl.approvals.list()).approvals;
  const begun = performance.now();
  const cpu = process.cpuUsage();
  await pawl.approvals.decide(open.id, { decision: "approved", by: "ann" });
  await pawl.get("chat").result();
  const ms = performance.now() - begun;
  const { user, system } = process.cpuUsage(cpu);
  await pawl.close();
  process.stdout.write(JSON.stringify({ ms, cpuMs: (user + system) / 1000, requests: model.requests.length }));
}
