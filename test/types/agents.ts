// Compiled by `npm run types`, never run: models of the AI SDK are models as they are, and the types of agents and tools flow.
import type { LanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { Pawl } from "pawl";
import { type AgentOutcome, agent, type Model, prompt, section, slice, type ToolInfo, tool } from "pawl/agent";
import { z } from "zod";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function expectType<_T extends true>(): void {}

declare const ofProvider: Exclude<LanguageModel, string>;
const model: Model = ofProvider;
const mock: Model = new MockLanguageModelV3();

const findings = slice<{ readonly path: string }>("findings");
const find = tool({
  name: "find",
  description: "Finds.",
  class: "read",
  input: z.object({ path: z.string(), depth: z.string().transform(Number) }),
  output: findings,
  run: ({ path, depth }, info) => {
    expectType<Equal<typeof depth, number>>();
    expectType<Equal<typeof info, ToolInfo>>();
    // @ts-expect-error A tool has no way to the engine (S2-1).
    void info.step;
    return { path };
  },
});
// @ts-expect-error What a tool may change must be said.
tool({ name: "x", description: "x", input: z.object({}), run: () => 1 });
tool({
  name: "x",
  description: "x",
  class: "read",
  input: z.object({}),
  output: findings,
  // @ts-expect-error Its value does not fit its slice.
  run: () => 1,
});

const count = prompt({
  namespace: "t",
  key: "count",
  sections: [section<{ place: string }>({ title: "Task", key: "task", body: "Count in $place" })],
  output: z.object({ birds: z.number() }),
});
const counter = agent({
  name: "counter",
  model,
  tools: [find],
  input: z.object({ place: z.string() }),
  prompt: ({ place }) => count.bind({ place }),
});
const plain = agent({ name: "plain", model: mock, prompt: (place: string) => count.bind({ place }) });
// @ts-expect-error Its prompt needs a place.
agent({ name: "wrong", model, prompt: (place: number) => count.bind({ place }) });

const pawl = await Pawl.open({ workflows: [counter, plain] });
const counted = await pawl.run(counter, { place: "here" });
expectType<Equal<typeof counted, { birds: number }>>();
await pawl.run(plain, "here");
// @ts-expect-error A place is text.
await pawl.run(counter, { place: 1 });

export async function asked(ctx: Parameters<typeof counter.play>[0]): Promise<number> {
  const outcome = await counter.play(ctx, { place: "here" });
  expectType<Equal<typeof outcome, AgentOutcome<{ birds: number }>>>();
  // @ts-expect-error Only a result has a value.
  void outcome.value;
  return outcome.outcome === "result" ? outcome.value.birds : 0;
}
