// Tools that wait for people: questions, and where nobody can be asked.
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { modelAdapter } from "../../src/agent/adapter.ts";
import { agent } from "../../src/agent/agent.ts";
import { AgentLoop } from "../../src/agent/loop.ts";
import { prompt } from "../../src/agent/prompt.ts";
import { question } from "../../src/agent/question.ts";
import { callTools, type Script, say, scriptedModel } from "../../src/agent/scripted-model.ts";
import { section } from "../../src/agent/section.ts";
import { type Tool, tool } from "../../src/agent/tool.ts";
import { testEngine } from "../../src/testing/test-engine.ts";
import { errorOf, openWorld, STORES } from "./harness.ts";

const task = prompt({
  namespace: "test",
  key: "task",
  sections: [section<{ request: string }>({ title: "Task", key: "task", body: "Do this: $request" })],
});

const askCustomer = question({
  name: "ask_customer",
  description: "Asks the customer something.",
  input: z.object({ question: z.string() }),
  signal: "answer",
  timeout: "3 days",
});

const agentOf = (
  script: Script,
  tools: readonly Tool<never, unknown>[],
  durability: "perCall" | "snapshot" = "perCall",
) =>
  agent<string, string>({
    name: "helper",
    model: scriptedModel(script),
    durability,
    tools,
    prompt: (request) => task.bind({ request }),
  });

const ASKING: Script = ({ prompt: messages }) => {
  const text = JSON.stringify(messages.at(-1));
  if (text.includes("blue")) return say("It will be blue.");
  return text.includes("failed") ? say("Nobody knows.") : callTools({ ask_customer: { question: "Which colour?" } });
};

describe.each(STORES)("an agent that asks on %s", (store) => {
  it("S4-3 S2-54 X-14 waits for the answer over a restart, without a worker, and goes on with it", async () => {
    const world = await openWorld(store);
    const helper = agentOf(ASKING, [askCustomer]);
    const first = await world.open([helper]);
    const run = await first.start(helper, "paint it", { id: "r" });
    await first.idle();
    const { state, waits, owner } = await run.status();
    expect({ state, owner, waits: waits.map(({ kind, name }) => [kind, name]) }).toEqual({
      state: "waiting",
      owner: null,
      waits: [["signal", "answer"]],
    });
    const second = await world.restart([helper]);
    await second.signal("r", "answer", "blue");
    expect(await second.get("r").result()).toBe("It will be blue.");
  });

  it("S4-33 X-14 is told that nobody has answered in time", async () => {
    const world = await openWorld(store);
    const helper = agentOf(ASKING, [askCustomer]);
    const pawl = await world.open([helper]);
    const run = await pawl.start(helper, "paint it");
    await pawl.idle();
    await world.advance(3 * 24 * 3600 * 1000 + 1);
    expect(await run.result()).toBe("Nobody knows.");
  });
});

describe("where nobody can be asked", () => {
  const published: string[] = [];
  const publish = tool({
    name: "publish",
    description: "Publishes a text.",
    class: "write",
    idempotent: true,
    approval: { approvers: ["ann"] },
    input: z.object({ text: z.string() }),
    run: ({ text }) => {
      published.push(text);
      return "published";
    },
  });

  it.each([
    ["an approval", callTools({ publish: { text: "draft" } })],
    ["an answer", callTools({ ask_customer: { question: "Which colour?" } })],
  ])("I26 B55 S2-1 a tool that needs %s is refused in a plain loop, and never begins", async (_what, first) => {
    const model = scriptedModel([first, say("I cannot.")]);
    const adapter = modelAdapter(model, { tools: [publish, askCustomer] });
    const loop = new AgentLoop<string, string>({ adapter, prompt: (request) => task.bind({ request }) });
    const { text } = await loop.execute("go");
    expect(text).toBe("I cannot.");
    expect(JSON.stringify(model.requests[1]!.prompt.at(-1))).toContain("nobody can be asked here");
    expect(published).toEqual([]);
  });

  it("I26 S2-1 an agent that is one step is refused with the tool's name", async () => {
    const world = await openWorld("memory");
    const helper = agentOf(ASKING, [askCustomer], "snapshot");
    const pawl = await world.open([helper]);
    const error = await errorOf(pawl.run(helper, "paint it"));
    expect(error).toMatchObject({ code: "invalid_argument", fields: { tool: "ask_customer" } });
  });
});

it("S4-3 X-15 two questions of one round get their answers in their order", async () => {
  const model = scriptedModel([
    callTools({ ask_customer: { question: "Which colour?" } }, { ask_customer: { question: "Which size?" } }),
    say("ordered"),
  ]);
  const helper = agent<string, string>({
    name: "helper",
    model,
    tools: [askCustomer],
    prompt: (request) => task.bind({ request }),
  });
  const engine = await testEngine({ workflows: [helper] });
  const run = await engine.start(helper, "go");
  await engine.settle();
  for (const answer of ["blue", "small"]) await engine.signal(run.id, "answer", answer);
  expect(await run.result()).toBe("ordered");
  const { content } = model.requests[1]!.prompt.at(-1) as {
    readonly content: readonly { readonly output?: unknown }[];
  };
  expect(content.map(({ output }) => output)).toEqual([
    { type: "text", value: "blue" },
    { type: "text", value: "small" },
  ]);
  await engine.close();
});

it("I26 S1-37 a tool that goes in order behind one that waits for people begins after them, however long they take", async () => {
  const did: string[] = [];
  const inOrder = (name: string, more: object) =>
    tool({
      name,
      description: "Works on the session.",
      class: "write",
      idempotent: true,
      inOrder: true,
      input: z.object({}),
      run: () => void did.push(name),
      ...more,
    });
  const tools = [inOrder("first", { approval: { approvers: ["ann"] } }), inOrder("second", {})];
  const helper = agentOf([callTools({ first: {} }, { second: {} }), say("both")], tools);
  const engine = await testEngine({ workflows: [helper] });
  const run = await engine.start(helper, "go");
  await engine.advance("1 hour");
  expect({ did: [...did], owner: (await run.status()).owner }).toEqual({ did: [], owner: null });
  await engine.decide(run.id, "tool.first.call_1_1", { decision: "approved", by: "ann" });
  expect(await run.result()).toBe("both");
  expect(did).toEqual(["first", "second"]);
  await engine.close();
});
