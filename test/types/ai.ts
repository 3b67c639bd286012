// Compiled by `npm run types`, and with ai 7 by `npm run test:node24`; never run: what durable models, tools and agents are to the AI SDK's own types.
import { generateText, type LanguageModel, Output, streamText, ToolLoopAgent, tool } from "ai";
import type { MockLanguageModelV3 } from "ai/test";
import type { Context } from "pawl";
import { DurableAgent, durableDownload, durableModel, durableTools, type ToolApprovals, unguarded } from "pawl/ai";
import { z } from "zod";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function expectType<_T extends true>(): void {}

declare const ctx: Context;
declare const model: MockLanguageModelV3;

const tools = {
  search: tool({ inputSchema: z.object({ query: z.string() }), execute: ({ query }) => [query] }),
  publish: tool({ inputSchema: z.object({ text: z.string() }), needsApproval: true, execute: () => ({ url: "" }) }),
};

export async function sdkFunctions(): Promise<void> {
  const durable = durableModel(ctx, model, { price: ({ inputTokens }) => ({ usd: inputTokens / 1e6 }), timeout: "1m" });
  const same: LanguageModel = durable;
  // @ts-expect-error only what the SDK uses of a model is there
  durable.doGenerateCalls;
  const durableOnes = durableTools(ctx, tools, { effects: { search: "read" }, approvals: { approvers: ["ann"] } });
  expectType<Equal<typeof durableOnes, typeof tools>>();
  const result = await generateText({ model: same, tools: durableOnes, prompt: "Go." });
  for (const call of result.staticToolCalls)
    if (call.toolName === "search") expectType<Equal<typeof call.input, { query: string }>>();
  const { output } = await unguarded(() =>
    generateText({ model: durable, prompt: "?", output: Output.object({ schema: z.object({ city: z.string() }) }) }),
  );
  expectType<Equal<typeof output, { city: string }>>();
  streamText({ model: durable, prompt: "?", experimental_download: durableDownload(ctx) });
  await new ToolLoopAgent({ model: durable, tools: durableOnes }).generate({ prompt: "?" });
}

export async function agents(): Promise<void> {
  const settings = { model, instructions: "Be brief.", tools, approvals: { approvers: ["ann"] } };
  const plain = new ToolLoopAgent({ model, tools });
  const agent = new DurableAgent(ctx, {
    ...settings,
    effects: { search: "read", publish: { idempotent: true, undo: (input, output) => [input, output] } },
    stopWhen: ({ steps }) =>
      steps.some(({ staticToolCalls }) => staticToolCalls.some(({ toolName }) => toolName === "publish")),
  });
  expectType<Equal<typeof agent.tools, typeof tools>>();
  const result = await agent.generate({ prompt: "Go." });
  const plainResult = await plain.generate({ prompt: "Go." });
  expectType<Equal<typeof result.text, string>>();
  expectType<Equal<typeof result.staticToolResults, typeof plainResult.staticToolResults>>();
  expectType<Equal<typeof result.steps, typeof plainResult.steps>>();
  const stream = await agent.stream({ messages: [{ role: "user", content: "Go." }] });
  for await (const piece of stream.textStream) expectType<Equal<typeof piece, string>>();

  const typed = new DurableAgent(ctx, { model, output: Output.object({ schema: z.object({ city: z.string() }) }) });
  const { output } = await typed.generate({ prompt: "Where?" });
  expectType<Equal<typeof output, { city: string }>>();

  // @ts-expect-error there is no such tool
  durableTools(ctx, tools, { effects: { find: "read" } });
  // @ts-expect-error there is no such class
  new DurableAgent(ctx, { ...settings, effects: { search: "look" } });
  // @ts-expect-error somebody must be asked
  const nobody: ToolApprovals = { timeout: "1 day" };
  void nobody;
  // @ts-expect-error an agent is asked something
  await agent.generate({});
}
