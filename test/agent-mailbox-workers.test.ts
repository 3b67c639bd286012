// Three real worker processes share a mailbox, and one of them is killed.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { mailbox } from "../src/agent/mailbox.ts";
import { Pawl } from "../src/client/pawl.ts";
import { workflow } from "../src/core/workflow.ts";
import { built, type Child, startChild } from "./child.ts";

const REQUESTS = 10;

function startWorker(folder: string): Child {
  const child = startChild(`
    import { appendFileSync } from "node:fs";
    import { Pawl } from "${built("index.js")}";
    import { agent, callTools, mailbox, prompt, say as answer, scriptedModel, section, tool } from "${built("agent/index.js")}";
    const act = tool({
      name: "act",
      description: "Acts.",
      class: "execute",
      idempotent: true,
      input: { jsonSchema: { type: "object", properties: { n: { type: "integer" } } } },
      async run({ n }, { key }) {
        appendFileSync(${JSON.stringify(join(folder, "acts"))}, n + " " + key + "\\n");
        if (n !== 3 || process.env.HANGS !== "1") return n;
        say("inside");
        return new Promise(() => {});
      },
    });
    const task = prompt({ namespace: "test", key: "task", sections: [section({ title: "Task", key: "task", body: "Do number $n." })] });
    const model = scriptedModel((request, round) => {
      const n = Number(/number (\\d+)/.exec(request.prompt[0].content)[1]);
      return round === 1 ? callTools({ act: { n } }) : answer("did " + n);
    });
    const handler = agent({ name: "handler", model, tools: [act], prompt: (n) => task.bind({ n }) });
    const box = mailbox({ name: "letters", handler });
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const pawl = await Pawl.open(${JSON.stringify(join(folder, "pawl.db"))}, { workflows: box.workflows, logger, poll: "50ms", lease: "2s", concurrency: 2 });
    say("working");
    await heard();
    await pawl.close();`);
  onTestFinished(() => child.kill());
  return child;
}

it("S1-75 three workers, ten requests, one worker killed: all ten are done once", {
  timeout: 90_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-mailbox-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  process.env["HANGS"] = "1";
  const victim = startWorker(folder);
  delete process.env["HANGS"];
  await victim.line();
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const client = await Pawl.open(join(folder, "pawl.db"), { logger, poll: "50ms" });
  onTestFinished(() => client.close());
  // Only its name counts here: this process works on nothing.
  const box = mailbox({ name: "letters", handler: workflow<number, string>("handler", () => "") });
  const first = await box.send(client, 3, { key: "request-3" });
  expect(await victim.line()).toBe("inside");
  const others = [startWorker(folder), startWorker(folder)];
  for (const child of others) await child.line();
  const runs = [first];
  for (let n = 1; n <= REQUESTS; n++) if (n !== 3) runs.push(await box.send(client, n, { key: `request-${n}` }));
  await victim.kill();
  const answers = await Promise.all(runs.map((run) => run.result()));
  expect(answers.sort()).toEqual(Array.from({ length: REQUESTS }, (_, n) => `did ${n + 1}`).sort());
  const acts = readFileSync(join(folder, "acts"), "utf8").trim().split("\n");
  // What was interrupted was asked for again under the same key: the one that hung, and perhaps the other that its worker had under way.
  expect(new Set(acts).size).toBe(REQUESTS);
  const again = acts.filter((act, index) => acts.indexOf(act) < index);
  expect(again.filter((act) => act.startsWith("3 "))).toHaveLength(1);
  expect(again.length).toBeLessThanOrEqual(2);
  for (const child of others) child.tell("stop");
  for (const child of others) await child.rest();
});
