// DurableAgent: the SDK's loop, its settings, and what it does in the body.
import { Output, stepCountIs, tool } from "ai";
import * as mocks from "ai/test";
import { type Context, type Log, type Workflow, workflow } from "pawl";
import { DurableAgent, durableDownload } from "pawl/ai";
import { type TestEngine, testEngine } from "pawl/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { type Asked, type Line, mockModel, scripted } from "./fixtures/ai/scripted.ts";

const QUIET: Log = { debug() {}, info() {}, warn() {}, error() {} };
const ANY = z.record(z.string(), z.unknown());
const isAi7 = "MockLanguageModelV4" in mocks;

async function engineWith(flow: Workflow<never, unknown>, logger = QUIET): Promise<TestEngine> {
  const engine = await testEngine({ workflows: [flow], logger });
  onTestFinished(() => engine.close());
  return engine;
}

const agentFlow = <O>(body: (ctx: Context) => Promise<O>) => workflow({ name: "agent", guard: "error" }, body);
const calling = (...calls: readonly (readonly [id: string, tool: string, input?: unknown])[]): Line => ({
  calls: calls.map(([id, name, input]) => ({ id, tool: name, input })),
});
const act = tool({ inputSchema: ANY, execute: (input) => input });

it("the tests see the version of the SDK that they are meant for", () => {
  expect(isAi7).toBe(process.env["PAWL_TEST_AI"] !== undefined);
  expect(mockModel({}).specificationVersion).toBe(isAi7 ? "v4" : "v3");
});

describe("the loop of the SDK in a body", () => {
  it("P4 I26 issues all tool calls of a round in one turn, and takes their results in the order of the journal", async () => {
    const gates = new Map<string, () => void>();
    const wait = tool({
      inputSchema: ANY,
      execute: async (_, { toolCallId }) => {
        await new Promise<void>((open) => gates.set(toolCallId, open));
        return toolCallId;
      },
    });
    const flow = agentFlow(async (ctx) => {
      const model = scripted([calling(["1", "wait"], ["2", "wait"], ["3", "wait"]), { text: "all" }]);
      const agent = new DurableAgent(ctx, { model, tools: { wait }, effects: { wait: "read" } });
      return (await agent.generate({ prompt: "Go." })).text;
    });
    const engine = await engineWith(flow);
    const run = await engine.start(flow);
    for (const id of ["3", "1", "2"]) {
      await engine.until(() => gates.has(id));
      gates.get(id)?.();
      await engine.settle();
    }
    expect(await run.result()).toBe("all");
    const calls = (await run.journal()).filter(({ key }) => key?.startsWith("tool"));
    expect(calls.map(({ type, key }) => `${type} ${key}`)).toEqual([
      "step.started tool.wait.1",
      "step.started tool.wait.2",
      "step.started tool.wait.3",
      "step.completed tool.wait.3",
      "step.completed tool.wait.1",
      "step.completed tool.wait.2",
    ]);
  });

  it("S3-14 draws ids by the run: two agents and all their replays have the same, and the engine's dice are not touched", async () => {
    const ids: string[][] = [];
    const flow = agentFlow(async (ctx) => {
      const agent = new DurableAgent(ctx, { model: scripted([{ text: "one" }]) });
      const stream = await agent.stream({ prompt: "Go." });
      const parts: string[] = [];
      for await (const part of stream.fullStream) if ("id" in part) parts.push(String(part.id));
      ids.push([...parts, (await stream.response).id, ctx.uuid()]);
      await ctx.waitFor("go");
    });
    const engine = await engineWith(flow);
    const run = await engine.start(flow);
    await engine.settle();
    // It has left memory: what follows is a replay.
    await run.signal("go");
    await run.result();
    expect(ids).toHaveLength(2);
    expect(ids[1]).toEqual(ids[0]);
  });

  it("P4 fetches a file of the prompt once, in a step, where the model cannot do so itself", async () => {
    const fetched = vi.fn(async (_: { url: URL }) => ({ data: new Uint8Array([1, 2]), mediaType: "image/png" }));
    const asked: Asked[] = [];
    const flow = agentFlow(async (ctx) => {
      const model = scripted([calling(["1", "act"]), { text: "a cat" }], (one) => asked.push(one));
      const image = { type: "file", mediaType: "image/png", data: new URL("https://example.org/cat.png") } as const;
      const agent = new DurableAgent(ctx, {
        model,
        tools: { act },
        experimental_download: durableDownload(ctx, fetched),
      });
      const { text } = await agent.generate({ messages: [{ role: "user", content: [image] }] });
      await ctx.waitFor("go");
      return text;
    });
    const engine = await engineWith(flow);
    const run = await engine.start(flow);
    await engine.settle();
    await run.signal("go");
    expect(await run.result()).toBe("a cat");
    expect(fetched).toHaveBeenCalledTimes(1);
    expect(JSON.stringify(asked[1]?.prompt)).not.toContain("example.org");
  });

  it("X-13 E-9 stops where a budget ends, as an error of the call", async () => {
    const asked: Asked[] = [];
    const flow = workflow({ name: "agent", budget: { usd: 0.02, onExceeded: "fail" } }, async (ctx) => {
      const model = scripted([calling(["1", "act"]), calling(["2", "act"]), { text: "ok" }], (one) => asked.push(one));
      const agent = new DurableAgent(ctx, { model, tools: { act }, price: () => ({ usd: 0.01 }) });
      await agent.generate({ prompt: "Go." });
    });
    await expect((await engineWith(flow)).run(flow)).rejects.toMatchObject({ code: "budget_exceeded" });
    expect(asked).toHaveLength(2);
  });
});

describe("settings of the SDK", () => {
  it("hold: instructions, stopWhen, call options, output and callbacks", async () => {
    const asked: Asked[] = [];
    const seen: number[] = [];
    const flow = agentFlow(async (ctx) => {
      const agent = new DurableAgent(ctx, {
        id: "cities",
        model: scripted([calling(["1", "act"]), calling(["2", "act"]), { text: '{"city":"Rome"}' }], (one) =>
          asked.push(one),
        ),
        instructions: "Be brief.",
        tools: { act },
        stopWhen: stepCountIs(5),
        output: Output.object({ schema: z.object({ city: z.string() }) }),
        onStepFinish: ({ toolCalls }) => void seen.push(toolCalls.length),
      });
      const { output, steps } = await agent.generate({ prompt: "Where?" });
      const short = new DurableAgent(ctx, {
        model: scripted([calling(["3", "act"]), { text: "never" }]),
        tools: { act },
        stopWhen: stepCountIs(1),
      });
      return [agent.id, output.city, steps.length, (await short.generate({ prompt: "?" })).steps.length];
    });
    expect(await (await engineWith(flow)).run(flow)).toEqual(["cities", "Rome", 3, 1]);
    expect(asked[0]?.prompt[0]).toMatchObject({ role: "system", content: "Be brief." });
    expect(seen).toEqual([1, 1, 0]);
  });

  it("X-20 a model that prepareStep or prepareCall chooses is as durable as the first", async () => {
    const flow = agentFlow(async (ctx) => {
      const agent = new DurableAgent(ctx, {
        model: scripted([calling(["1", "act"])]),
        tools: { act },
        prepareCall: (call) => ({ ...call, tools: { act: { ...act } }, instructions: "prepared" }),
        prepareStep: ({ stepNumber }) => (stepNumber === 0 ? {} : { model: scripted([{}, { text: "other" }]) }),
      });
      return (await agent.generate({ prompt: "Go." })).text;
    });
    const engine = await engineWith(flow);
    const run = await engine.start(flow);
    expect(await run.result()).toBe("other");
    const keys = (await run.journal()).filter(({ type }) => /started|planned/.test(type)).map(({ key }) => key);
    expect(keys).toEqual([null, "model", "tool.act.1", "model#2"]);
  });

  it("a model that is only named comes from the program's provider", async () => {
    const languageModel = () => scripted([{ text: "by name" }]);
    Object.assign(globalThis, { AI_SDK_DEFAULT_PROVIDER: { languageModel } });
    onTestFinished(() => void Reflect.deleteProperty(globalThis, "AI_SDK_DEFAULT_PROVIDER"));
    const flow = agentFlow(async (ctx) => {
      const agent = new DurableAgent(ctx, { model: "openai/gpt-5" });
      return (await agent.generate({ prompt: "Go." })).text;
    });
    expect(await (await engineWith(flow)).run(flow)).toBe("by name");
  });

  // ai 6 has no such setting.
  it.runIf(isAi7)("I26 toolApproval of ai 7 asks people, or decides by itself", async () => {
    const acted: unknown[] = [];
    const book = tool({ inputSchema: ANY, execute: (input) => void acted.push(input["n"]) });
    const toolApproval = ({ toolCall }: { toolCall: { input: { n: number } } }) =>
      (["not-applicable", "approved", "denied", "user-approval"] as const)[toolCall.input.n];
    const flow = agentFlow(async (ctx) => {
      const calls = [0, 1, 2, 3].map((n) => [`${n}`, "book", { n }] as const);
      const settings = { toolApproval } as object;
      const model = scripted([calling(...calls), { text: "ok" }]);
      const agent = new DurableAgent(ctx, { model, tools: { book }, approvals: { approvers: ["ann"] }, ...settings });
      return (await agent.generate({ prompt: "Go." })).text;
    });
    const engine = await engineWith(flow);
    const run = await engine.start(flow);
    await engine.settle();
    expect(acted).toEqual([0, 1]);
    await engine.decide(run.id, "book", { decision: "approved", by: "ann" });
    expect(await run.result()).toBe("ok");
    expect(acted).toEqual([0, 1, 3]);
  });
});
