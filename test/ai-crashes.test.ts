// An agent of the AI SDK, crashed at every point: the SDK's own loop in the body of a workflow.
import { ToolLoopAgent, tool } from "ai";
import { type Context, workflow } from "pawl";
import { DurableAgent, durableModel, durableTools, stepOf } from "pawl/ai";
import { crashEverywhere, type Recorder, recorder } from "pawl/testing";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { scripted } from "./fixtures/ai/scripted.ts";

const APPROVALS = { approvers: ["ann"] };

/** Three tools at once, one of which needs approval; then an answer. */
const model = scripted([
  {
    calls: [
      { id: "call_1", tool: "search", input: { query: "pawls" } },
      { id: "call_2", tool: "read", input: { page: 7 } },
      { id: "call/3#x", tool: "publish", input: { text: "all about pawls" } },
    ],
  },
  { text: "It is out." },
]);

/** Nothing guards them: whoever begins one twice does it twice. What they do is done when they end, so that a person can tell. */
const toolsOver = (outside: Recorder) => ({
  search: tool({
    inputSchema: z.object({ query: z.string() }),
    execute: ({ query }) => {
      outside.record("search");
      return [`${query} 1`, `${query} 2`];
    },
  }),
  read: tool({
    inputSchema: z.object({ page: z.number() }),
    execute: ({ page }) => {
      outside.record("read");
      return `page ${page}`;
    },
  }),
  publish: tool({
    inputSchema: z.object({ text: z.string() }),
    needsApproval: true,
    execute: ({ text }) => {
      outside.record("publish");
      return { url: `https://example.org/${text.length}` };
    },
  }),
});

type Tools = ReturnType<typeof toolsOver>;

/** The ways in which the SDK is used in a body. */
const WAYS: Readonly<Record<string, (ctx: Context, tools: Tools) => Promise<string>>> = {
  "DurableAgent.generate": async (ctx, tools) => {
    const agent = new DurableAgent(ctx, { model, tools, approvals: APPROVALS });
    return (await agent.generate({ prompt: "Write about pawls." })).text;
  },
  "DurableAgent.stream": async (ctx, tools) => {
    const agent = new DurableAgent(ctx, { model, tools, approvals: APPROVALS });
    return (await agent.stream({ prompt: "Write about pawls." })).text;
  },
  "the SDK's ToolLoopAgent": async (ctx, tools) => {
    const durable = { model: durableModel(ctx, model), tools: durableTools(ctx, tools, { approvals: APPROVALS }) };
    return (await new ToolLoopAgent(durable).generate({ prompt: "Write about pawls." })).text;
  },
};

const publishing = (way: string, outside: Recorder) => {
  const tools = toolsOver(outside);
  // In ai 7 the SDK draws an id of its own for each call, which goes nowhere: only DurableAgent gives it one.
  const guard = way.startsWith("DurableAgent") ? "error" : "warn";
  return workflow({ name: "agent", guard }, (ctx) => (WAYS[way] as (typeof WAYS)[string])(ctx, tools));
};

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 180_000 });

describe("an agent with three parallel tools, one of which waits for approval, crashed at every point in all modes", () => {
  it.each(Object.keys(WAYS))("B55 I26 X-20 C-11 begins each tool once: %s", async (way) => {
    const outside = recorder();
    const report = await crashEverywhere(publishing(way, outside), undefined, {
      recorder: outside,
      script: (run, engine) => engine.decide(run.id, "publish", { decision: "approved", by: "ann" }),
    });
    expect(report.toString()).toMatch(/^ok: /);
    expect(report.outcome).toBe("succeeded with 'It is out.'");
    expect(report.isComplete).toBe(true);
    expect(report.varying).toEqual([]);
    expect(outside.requests.map(({ name }) => name)).toEqual(["search", "read", "publish"]);
  });

  it("I26 never begins what was denied: the model is told, and goes on", async () => {
    const outside = recorder();
    const report = await crashEverywhere(publishing("DurableAgent.generate", outside), undefined, {
      recorder: outside,
      script: (run, engine) => engine.decide(run.id, "publish", { decision: "denied", by: "ann", reason: "too long" }),
    });
    expect(report.toString()).toMatch(/^ok: /);
    expect(report.isComplete).toBe(true);
    expect(outside.requests.map(({ name }) => name)).toEqual(["search", "read"]);
  });
});

it("I6 C-11 readers may begin again after a crash, and hand the key on that tells so", async () => {
  const outside = recorder();
  const look = tool({
    inputSchema: z.object({}),
    execute: async (_, options) => {
      outside.record("look", {}, stepOf(options)?.key);
      return "seen";
    },
  });
  const agent = workflow({ name: "agent", guard: "error" }, async (ctx) => {
    const reader = scripted([
      {
        calls: [
          { id: "1", tool: "look" },
          { id: "2", tool: "look" },
        ],
      },
      { text: "seen" },
    ]);
    const agent = new DurableAgent(ctx, { model: reader, tools: { look }, effects: { look: "read" } });
    return (await agent.generate({ prompt: "Look." })).text;
  });
  const report = await crashEverywhere(agent, undefined, { recorder: outside });
  expect(report.toString()).toMatch(/^ok: /);
  expect(
    report.repeats.filter(({ step }) => step.startsWith("tool")).map(({ times, usedKey }) => [times, usedKey]),
  ).toEqual([
    [2, true],
    [2, true],
  ]);
});
