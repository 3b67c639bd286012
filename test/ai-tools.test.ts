// Tools of the AI SDK as calls of a run.
import { tool } from "ai";
import { type Run, type Workflow, workflow } from "pawl";
import { DurableAgent, type DurableAgentSettings, durableTools, isDenied, stepOf } from "pawl/ai";
import { type TestEngine, testEngine } from "pawl/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { type Asked, type Line, scripted } from "./fixtures/ai/scripted.ts";

const QUIET = { debug() {}, info() {}, warn() {}, error() {} };
const ANY = z.record(z.string(), z.unknown());
const APPROVALS = { approvers: ["ann"] };

type Tools = Record<string, ReturnType<typeof toolOf>>;
type Settings = Omit<DurableAgentSettings<never, Tools, never>, "model">;

const toolOf = (execute: (input: Record<string, unknown>, options: { toolCallId: string }) => unknown, more = {}) =>
  tool({ inputSchema: ANY, execute, ...more });

async function engineWith(flow: Workflow<never, unknown>): Promise<TestEngine> {
  const engine = await testEngine({ workflows: [flow], logger: QUIET });
  onTestFinished(() => engine.close());
  return engine;
}

/** A run of an agent that says these lines, and what it was asked. */
async function started(lines: readonly Line[], settings: Settings) {
  const asked: Asked[] = [];
  const flow = workflow({ name: "agent", guard: "error" }, async (ctx) => {
    const model = scripted(lines, (one) => asked.push(one));
    const result = await new DurableAgent(ctx, { model, ...settings }).generate({ prompt: "Go." });
    return {
      text: result.text,
      outputs: result.steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => output as unknown)),
    };
  });
  const engine = await engineWith(flow);
  return { engine, asked, run: await engine.start(flow) };
}

const entriesOf = async (run: Run<unknown>, type: string) =>
  (await run.journal()).filter((entry) => entry.type === type).map(({ key }) => key);

/** What the model was told of its tool calls. */
const toldOf = (asked: readonly Asked[]): unknown[] =>
  (asked.at(-1)?.prompt ?? [])
    .filter(({ role }) => role === "tool")
    .flatMap(({ content }) => content as { output: unknown }[])
    .map(({ output }) => output);

const calling = (...calls: readonly (readonly [id: string, tool: string, input?: unknown])[]): Line => ({
  calls: calls.map(([id, name, input]) => ({ id, tool: name, input })),
});

describe("a call of a durable tool", () => {
  it("X-20 S2-64 is an effect of class write unless its tool is said to read, by the id that the model gave it", async () => {
    const tools = { look: toolOf(() => "seen"), act: toolOf(() => ({ done: true })), draft: toolOf(() => "drafted") };
    const { run, asked } = await started(
      [calling(["call_1", "look"], ["call_2", "act"], ["call_3", "draft"]), { text: "ok" }],
      { tools, effects: { look: "read", draft: { class: "draft" } } },
    );
    expect(await run.result()).toEqual({ text: "ok", outputs: ["seen", { done: true }, "drafted"] });
    expect(await entriesOf(run, "step.started")).toEqual(["model", "tool.look.call_1", "model#2"]);
    expect((await run.effects()).map(({ effect, class: kind, status }) => [effect, kind, status])).toEqual([
      ["tool.act.call_2", "write", "executed"],
      ["tool.draft.call_3", "draft", "executed"],
    ]);
    expect(toldOf(asked)).toEqual([
      { type: "text", value: "seen" },
      { type: "json", value: { done: true } },
      { type: "text", value: "drafted" },
    ]);
  });

  it("B55 has a safe key, also where ids repeat or names could not have them", async () => {
    const long = "x".repeat(300);
    const { run } = await started(
      [calling(["a/b#c", "act"]), calling(["a/b#c", "act"], [long, "act"]), { text: "ok" }],
      { tools: { act: toolOf(() => 1) } },
    );
    await run.result();
    const keys = await entriesOf(run, "effect.planned");
    expect(keys.slice(0, 2)).toEqual(["tool.act.a_b_c", "tool.act.a_b_c#2"]);
    expect(keys[2]).toMatch(/^tool\.act\.x{16}~[\w-]{16}$/);
  });

  it("S2-64 knows its step, its signal and what the SDK gives", async () => {
    const seen: unknown[] = [];
    const look = toolOf((input, options) => {
      const { abortSignal, messages } = options as { abortSignal?: AbortSignal; messages?: unknown[] };
      seen.push([input, options.toolCallId, abortSignal?.aborted, messages?.length, stepOf(options)?.attempt]);
      return stepOf(options)?.key;
    });
    const { run } = await started([calling(["1", "look", { q: 7 }]), { text: "ok" }], { tools: { look } });
    const { outputs } = await run.result();
    expect(seen).toEqual([[{ q: 7 }, "1", false, 1, 1]]);
    expect((await run.effects()).map(({ key }) => key)).toEqual(outputs);
    expect(stepOf({ toolCallId: "1" })).toBeUndefined();
  });

  it("that fails tells the model, after what retries it has", async () => {
    let looks = 0;
    const look = toolOf(() => {
      looks += 1;
      throw Object.assign(new Error("busy"), { status: 503 });
    });
    const { run, asked } = await started([calling(["1", "look"]), { text: "ok" }], {
      tools: { look },
      effects: { look: { class: "read", retry: 1 } },
    });
    expect(await run.result()).toMatchObject({ text: "ok", outputs: [] });
    expect(looks).toBe(2);
    expect(toldOf(asked)).toEqual([{ type: "error-text", value: expect.stringContaining("retries are used up") }]);
  });

  it("I6 that may have acted and failed is a person's to decide about, unless it is guarded", async () => {
    let acts = 0;
    const act = toolOf(() => {
      acts += 1;
      if (acts === 1) throw Object.assign(new Error("lost"), { code: "ECONNRESET" });
      return "done";
    });
    const { run, engine } = await started([calling(["1", "act"]), { text: "ok" }], { tools: { act } });
    await engine.settle();
    expect((await run.status()).parked?.reason).toBe("unknown_outcome");
    expect(acts).toBe(1);
    await engine.resolve(run.id, { choice: "happened", value: "done after all" });
    expect(await run.result()).toMatchObject({ outputs: ["done after all"] });

    acts = 0;
    const guarded = await started([calling(["1", "act"]), { text: "ok" }], {
      tools: { act },
      effects: { act: { idempotent: true } },
    });
    expect(await guarded.run.result()).toMatchObject({ outputs: ["done"] });
    expect(acts).toBe(2);
  });

  it("I16 with `undo` is taken back if the run fails later, and `detect` is asked with its input", async () => {
    const undone: unknown[] = [];
    const flow = workflow("agent", async (ctx) => {
      const agent = new DurableAgent(ctx, {
        model: scripted([calling(["1", "act", { n: 3 }]), { text: "ok" }]),
        tools: { act: toolOf(() => "done") },
        effects: { act: { undo: (input, output) => void undone.push([input, output]) } },
      });
      await agent.generate({ prompt: "Go." });
      throw new Error("too late");
    });
    await expect((await engineWith(flow)).run(flow)).rejects.toThrow("too late");
    expect(undone).toEqual([[{ n: 3 }, "done"]]);

    let acts = 0;
    const looked: unknown[] = [];
    const act = toolOf(() => {
      acts += 1;
      throw Object.assign(new Error("lost"), { code: "ECONNRESET" });
    });
    const detect = (input: unknown) => {
      looked.push(input);
      return { found: true as const, value: "found" };
    };
    const { run } = await started([calling(["1", "act", { n: 4 }]), { text: "ok" }], {
      tools: { act },
      effects: { act: { detect } },
    });
    expect(await run.result()).toMatchObject({ outputs: ["found"] });
    expect([acts, looked]).toEqual([1, [{ n: 4 }]]);
  });

  it("X-14 that says several things is recorded with its last word; the others go out at once", async () => {
    const slow = toolOf(async function* () {
      yield { percent: 10 };
      yield { percent: 100 };
    });
    const { run } = await started([calling(["1", "slow"]), { text: "ok" }], { tools: { slow } });
    const told: unknown[] = [];
    for await (const event of run.stream({ key: "tool.slow.1" })) if (event.type === "chunk") told.push(event.value);
    expect(told).toEqual(
      [10, 100].map((percent) => ({
        type: "tool-preliminary",
        toolCallId: "1",
        toolName: "slow",
        output: { percent },
      })),
    );
    expect(await run.result()).toMatchObject({ outputs: [{ percent: 100 }] });
  });

  it("keeps what the model would see of results that cannot be recorded as they are", async () => {
    class Row {
      readonly id = 7;
    }
    const { run } = await started([calling(["1", "act"]), { text: "ok" }], { tools: { act: toolOf(() => new Row()) } });
    expect(await run.result()).toMatchObject({ outputs: [{ id: 7 }] });
  });

  it('with effect "body" may use the context itself', async () => {
    const flow = workflow({ name: "agent", guard: "error" }, async (ctx) => {
      const wait = toolOf(async () => {
        await ctx.sleep("3 days");
        return ctx.step("then", () => "waited");
      });
      const model = scripted([calling(["1", "wait"], ["2", "wait"]), { text: "ok" }]);
      const agent = new DurableAgent(ctx, { model, tools: { wait }, effects: { wait: "body" } });
      return (await agent.generate({ prompt: "Wait." })).text;
    });
    const engine = await engineWith(flow);
    const run = await engine.start(flow);
    expect(await run.result()).toBe("ok");
    expect(await entriesOf(run, "step.started")).toEqual(["model", "then", "then#2", "model#2"]);
  });

  it("refuses effects of tools that are not there, and approvals that nobody could give", async () => {
    const flow = workflow("agent", async (ctx, what: string) => {
      const act = toolOf(() => 1, { needsApproval: true });
      if (what === "effects") durableTools(ctx, { act }, { approvals: APPROVALS, effects: { akt: "read" } as never });
      else durableTools(ctx, { act });
    });
    const engine = await engineWith(flow);
    await expect(engine.run(flow, "effects")).rejects.toThrow(
      'names the tool "akt", which is not there. There are act.',
    );
    await expect(engine.run(flow, "approvals")).rejects.toThrow('Tool "act" needs approval, and nobody is named');
  });
});

describe("tools that need approval", () => {
  const deciding = { decision: "approved", by: "ann" } as const;

  it("I26 ask for all calls of a round at the same time, each about its own arguments, and begin after their own decision", async () => {
    const order: unknown[] = [];
    const pay = toolOf(
      ({ to }) => {
        order.push(to);
        return `paid ${to}`;
      },
      { needsApproval: true },
    );
    const { run, engine } = await started(
      [calling(["1", "pay", { to: "a" }], ["2", "pay", { to: "b" }]), { text: "ok" }],
      { tools: { pay }, approvals: APPROVALS },
    );
    await engine.settle();
    const { approvals } = await engine.approvals.list();
    expect(approvals.map(({ action }) => action)).toEqual([
      { tool: "pay", arguments: { to: "a" } },
      { tool: "pay", arguments: { to: "b" } },
    ]);
    expect(order).toEqual([]);
    await engine.approvals.decide(approvals[1]?.id as string, deciding);
    await engine.settle();
    expect(order).toEqual(["b"]);
    await engine.approvals.decide(approvals[0]?.id as string, deciding);
    expect(await run.result()).toMatchObject({ outputs: ["paid a", "paid b"] });
    expect((await run.effects()).map(({ approval }) => approval)).toEqual(approvals.map(({ id }) => id).reverse());
  });

  it.each([
    ["denied", { decision: "denied", by: "ann", reason: "too much" }, "ann denied it, too much."],
    [
      "to be changed",
      { decision: "changes_requested", by: "ann", arguments: { cents: 5 } },
      'ann asks for changes; the arguments should be {"cents":5}.',
    ],
    ["not decided", null, "nobody decided in time."],
  ] as const)(
    "I26 that are %s do not begin, and the model sees the SDK's execution-denied",
    async (_, decision, why) => {
      let paid = 0;
      const pay = toolOf(() => ++paid, { needsApproval: true });
      const { run, engine, asked } = await started([calling(["1", "pay", { cents: 9 }]), { text: "ok" }], {
        tools: { pay },
        approvals: { ...APPROVALS, timeout: "1 day" },
      });
      if (decision !== null) await engine.decide(run.id, "pay", decision);
      const { outputs } = await run.result();
      expect(outputs.map(isDenied)).toEqual([true]);
      expect(toldOf(asked)).toEqual([{ type: "execution-denied", reason: `The call was not allowed: ${why}` }]);
      expect(paid).toBe(0);
    },
  );

  it("I26 by a rule are asked about where the rule says so, and what it said is recorded", async () => {
    const rule = vi.fn(async ({ cents }: { cents: number }) => cents > 100);
    const pay = toolOf(() => "paid", { needsApproval: rule });
    const { run, engine } = await started(
      [calling(["1", "pay", { cents: 5 }], ["2", "pay", { cents: 500 }]), { text: "ok" }],
      { tools: { pay }, approvals: APPROVALS, effects: { pay: "read" } },
    );
    await engine.decide(run.id, "pay", deciding);
    expect(await run.result()).toMatchObject({ outputs: ["paid", "paid"] });
    expect(rule.mock.calls.map(([input]) => input.cents)).toEqual([5, 500]);
    expect(await entriesOf(run, "approval.requested")).toEqual(["pay"]);
    expect(await entriesOf(run, "step.completed")).toContain("needs-approval.pay.2");
  });

  it("keep their own words for the model", async () => {
    const pay = toolOf(() => ({ cents: 5 }), {
      needsApproval: true,
      toModelOutput: ({ output }: { output: unknown }) => ({ type: "text", value: `own ${JSON.stringify(output)}` }),
    });
    const { run, engine, asked } = await started([calling(["1", "pay"]), { text: "ok" }], {
      tools: { pay },
      approvals: APPROVALS,
    });
    await engine.decide(run.id, "pay", deciding);
    await run.result();
    expect(toldOf(asked)).toEqual([{ type: "text", value: 'own {"cents":5}' }]);
  });
});
