// Tools that give and throw odd things, and models that ask oddly: what was done outside stays done, and the run goes on.
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type AgentOptions, agent } from "../../src/agent/agent.ts";
import { prompt } from "../../src/agent/prompt.ts";
import { callTools, type ScriptedModel, say, scriptedModel } from "../../src/agent/scripted-model.ts";
import { section } from "../../src/agent/section.ts";
import { Session } from "../../src/agent/session.ts";
import { slice } from "../../src/agent/slice.ts";
import { type ToolInfo, tool } from "../../src/agent/tool.ts";
import { PawlError } from "../../src/base/errors.ts";
import { testEngine } from "../../src/testing/test-engine.ts";

const task = prompt({
  namespace: "test",
  key: "task",
  sections: [section<{ request: string }>({ title: "Task", key: "task", body: "Do this: $request" })],
});

/** What the model is told of one call of a tool, and which entries the journal has of it. */
async function toldOf(
  made: ReturnType<typeof tool>,
  args: unknown,
  options: Partial<AgentOptions<string, string>> = {},
): Promise<{ readonly told: unknown; readonly entries: readonly string[] }> {
  const model = (options.model ?? scriptedModel([callTools({ [made.name]: args }), say("end")])) as ScriptedModel;
  const helper = agent<string, string>({
    name: "helper",
    model,
    tools: [made],
    prompt: (request) => task.bind({ request }),
    ...options,
  });
  const engine = await testEngine({ workflows: [helper] });
  const run = await engine.start(helper, "go");
  expect(await run.result()).toBe("end");
  const entries = (await run.journal()).filter(({ key }) => key?.startsWith("tool.")).map(({ type }) => type);
  await engine.close();
  const { content } = model.requests[1]!.prompt.at(-1) as {
    readonly content: readonly { readonly output?: unknown }[];
  };
  return { told: content[0]?.output, entries };
}

class Row {
  readonly id = 7;
}
const circle: { self?: unknown } = {};
circle.self = circle;

const act = (run: (args: { n: number }, info: ToolInfo) => unknown, more: object = {}) =>
  tool({ name: "act", description: "Acts.", class: "write", input: z.object({ n: z.number() }), run, ...more });

describe("a tool that has done something outside", () => {
  it.each([
    ["a class", () => new Row(), '{"id":7}'],
    ["a function", () => () => 1, "Done."],
    ["a circle", () => circle, "[object Object]"],
    ["a large number", () => ({ n: 5n }), '{"n":"5"}'],
    ["a map", () => new Map([["a", 1]]), '[["a",1]]'],
    ["a class as its value", () => ({ message: "Well.", value: new Row() }), "Well."],
  ])("C-7 I6 is not said to have failed for what it returns: %s", async (_what, result, value) => {
    expect(await toldOf(act(result), { n: 1 })).toEqual({
      told: { type: "text", value },
      entries: ["effect.planned", "effect.executed"],
    });
  });

  it("C-7 X-4 is not said to have failed if its slice refuses the value", async () => {
    const texts = slice<string>("texts", { schema: z.string() });
    const session: AgentOptions<string, string>["session"] = ({ id, createdAt }) =>
      new Session({ id, createdAt, slices: [texts] });
    const { told, entries } = await toldOf(
      act(({ n }) => n, { output: texts }),
      { n: 1 },
      { session },
    );
    expect(told).toMatchObject({ type: "text", value: expect.stringContaining("This is done") });
    expect(entries).toEqual(["effect.planned", "effect.executed"]);
  });
});

it.each([["cancelled"], ["deadline_exceeded"]] as const)(
  "X-18 a tool that throws %s about something else tells the model, and does not end the run",
  async (code) => {
    const { told } = await toldOf(
      act(() => {
        throw new PawlError(code, "another run has ended", { fields: { run: "another" } });
      }),
      { n: 1 },
    );
    expect(told).toMatchObject({ type: "error-text", value: expect.stringContaining("another run has ended") });
  },
);

it("S1-57 a tool gets its arguments as its schema makes them, also where JSON cannot tell the difference", async () => {
  const input = z.object({
    at: z.string().transform((text) => new Date(text)),
    count: z.string().transform((text) => BigInt(text)),
  });
  const read = tool({
    name: "read",
    description: "Reads.",
    class: "read",
    input,
    run: ({ at, count }) => `${at instanceof Date} ${typeof count}`,
  });
  const { told } = await toldOf(read as never, { at: "2026-01-01T00:00:00.000Z", count: "5" });
  expect(told).toEqual({ type: "text", value: "true bigint" });
});

it.each([["perCall"], ["snapshot"]] as const)(
  "S1-30 the slice that a tool adds to is in the session of its agent: %s",
  async (durability) => {
    const kept: unknown[] = [];
    const numbers = slice<number>("numbers");
    const completion: AgentOptions<string, string>["completion"] = (session) =>
      kept.push(...session.query(numbers).all()) > 0;
    const { told } = await toldOf(
      act(({ n }) => n, { output: numbers }),
      { n: 7 },
      { durability, completion },
    );
    expect({ told, kept }).toEqual({ told: { type: "text", value: "7" }, kept: [7] });
  },
);

it("S1-37 EV2 a tool that goes in order sees what the one before it did, also while another of the round is at work", async () => {
  const numbers = slice<number>("numbers");
  const given = { input: z.object({}), description: "Works.", class: "read" } as const;
  const gate = { open: () => {} };
  const isSeen = new Promise<void>((resolve) => Object.assign(gate, { open: resolve }));
  const seen: unknown[] = [];
  const slow = tool({ ...given, name: "slow", run: () => isSeen });
  const first = tool({ ...given, name: "first", inOrder: true, output: numbers, run: () => 7 });
  const second = tool({
    ...given,
    name: "second",
    inOrder: true,
    run: (_, { session }) => {
      seen.push(...session.query(numbers).all());
      gate.open();
    },
  });
  const model = scriptedModel([callTools({ slow: {} }, { first: {} }, { second: {} }), say("end")]);
  await toldOf(slow, {}, { model, tools: [slow, first, second] });
  expect(seen).toEqual([7]);
});
