// What agents may spend: reserved before each call, and known when it has answered.
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { modelAdapter } from "../../src/agent/adapter.ts";
import { type AgentOptions, agent } from "../../src/agent/agent.ts";
import { directCalls } from "../../src/agent/direct-calls.ts";
import { prompt } from "../../src/agent/prompt.ts";
import { callTools, say, scriptedModel } from "../../src/agent/scripted-model.ts";
import { section } from "../../src/agent/section.ts";
import { Session } from "../../src/agent/session.ts";
import { parseSnapshot, snapshotText } from "../../src/agent/snapshot.ts";
import { spentSlice } from "../../src/agent/spent.ts";
import { tool } from "../../src/agent/tool.ts";
import { manualClock } from "../../src/base/clock.ts";
import { workflow } from "../../src/core/workflow.ts";
import { testEngine } from "../../src/testing/test-engine.ts";
import { errorOf, openWorld } from "./harness.ts";

const task = prompt({
  namespace: "test",
  key: "task",
  sections: [section<{ request: string }>({ title: "Task", key: "task", body: "Do this: $request" })],
});
const look = tool({
  name: "look",
  description: "Looks.",
  class: "read",
  input: z.object({ n: z.number() }),
  run: ({ n }) => `seen ${n}`,
});
const USAGE = { inputTokens: 100, outputTokens: 20 };
/** Looks again and again, for 120 tokens each time. */
const tireless = () => scriptedModel((_, round) => ({ ...callTools({ look: { n: round } }), usage: USAGE }));

const agentOf = (model: AgentOptions<string, string>["model"], options: Partial<AgentOptions<string, string>> = {}) =>
  agent<string, string>({
    name: "helper",
    model,
    tools: [look],
    prompt: (request) => task.bind({ request }),
    price: ({ inputTokens, outputTokens }) => ({ usd: inputTokens * 0.001 + outputTokens * 0.01 }),
    ...options,
  });

describe("the budget of an agent", () => {
  it.each([
    ["tokens", 600, 120],
    ["usd", 1.5, 0.3],
    ["calls", 5, 1],
    ["inputTokens", 500, 100],
    ["outputTokens", 100, 20],
  ])("X-13 I26 stops it before the call that would pass its %s", async (unit, limit, each) => {
    const model = tireless();
    const reserve = { tokens: 120, usd: 0.3, inputTokens: 100, outputTokens: 20 };
    const helper = agentOf(model, { reserve, budget: { [unit]: limit, onExceeded: "fail" } });
    const engine = await testEngine({ workflows: [helper] });
    const run = await engine.start(helper, "go");
    expect(await errorOf(run.result())).toMatchObject({ code: "budget_exceeded" });
    expect(model.requests.length).toBe(Math.floor(limit / each + 1e-9));
    expect((await run.status()).stopReason).toBe("budget_exceeded");
    await engine.close();
  });

  it("X-13 parks it by default, and it goes on where it was when somebody raises the budget", async () => {
    const model = scriptedModel((_, round) =>
      round < 4 ? { ...callTools({ look: { n: round } }), usage: USAGE } : say("seen enough", USAGE),
    );
    const helper = agentOf(model, { reserve: { tokens: 120 }, budget: { tokens: 240 } });
    const engine = await testEngine({ workflows: [helper] });
    const run = await engine.start(helper, "go");
    run.result().catch(() => {});
    await engine.settle();
    expect((await run.status()).parked?.reason).toBe("budget_exceeded");
    expect(model.requests.length).toBe(2);
    await engine.resolve(run.id, { choice: "raise", value: { tokens: 1000 } });
    expect(await run.result()).toBe("seen enough");
    expect(model.requests.length).toBe(4);
    expect((await run.status()).cost).toMatchObject({ tokens: 480, usd: expect.closeTo(1.2) });
    await engine.close();
  });

  it("I26 agents at work at the same time pass it by no more than one call in flight", async () => {
    // Each call costs more than was reserved for it.
    const model = scriptedModel((_, round) => ({
      ...callTools({ look: { n: round } }),
      usage: { inputTokens: 150, outputTokens: 50 },
    }));
    const helper = agentOf(model, { reserve: { tokens: 100 } });
    const flow = workflow({ name: "flow", budget: { tokens: 1000, onExceeded: "fail" } }, (ctx) =>
      ctx.map([1, 2, 3, 4], (n) => helper.play(ctx, `part ${n}`), { partial: true }),
    );
    const engine = await testEngine({ workflows: [flow] });
    const run = await engine.start(flow);
    await run.result();
    const { tokens = 0 } = (await run.status()).cost ?? {};
    expect(tokens).toBeGreaterThan(600);
    // Four calls may be in flight, each with 100 more than it reserved.
    expect(tokens).toBeLessThanOrEqual(1000 + 4 * 100);
    await engine.close();
  });

  it.each([["snapshot"], ["whole"]] as const)(
    "X-13 I26 holds over a crash where the agent is one step, but for the call under way: %s",
    async (durability) => {
      const calls = { begun: 0, whenThird: () => {} };
      const third = new Promise<void>((resolve) => Object.assign(calls, { whenThird: resolve }));
      const model = scriptedModel((_, round) => {
        calls.begun += 1;
        if (calls.begun !== 3) return { ...callTools({ look: { n: round } }), usage: USAGE };
        calls.whenThird();
        return new Promise<never>(() => {});
      });
      const helper = agentOf(model, { durability, budget: { tokens: 600 } });
      const world = await openWorld("memory");
      const first = await world.open([helper]);
      await first.start(helper, "go", { id: "r" });
      await third;
      const second = await world.restart([helper]);
      expect(await errorOf(second.get("r").result())).toMatchObject({ code: "budget_exceeded" });
      expect(calls.begun).toBe(5 + 1);
    },
  );

  it("I26 an agent that is one step does not begin behind a budget that is used up", async () => {
    const model = tireless();
    const helper = agentOf(model, { durability: "snapshot" });
    const parent = workflow({ name: "parent", budget: { tokens: 100, onExceeded: "fail" } }, async (ctx) => {
      await ctx.step("spend", () => 1, { spend: { tokens: 100 } });
      return ctx.call(helper, "go");
    });
    const engine = await testEngine({ workflows: [parent, helper] });
    await errorOf((await engine.start(parent)).result());
    expect(model.requests.length).toBe(0);
    await engine.close();
  });

  it("X-13 without an engine it is kept in the session, over a restart", async () => {
    const model = tireless();
    const clock = manualClock();
    const work = async (session: Session, budget: object, deadline?: number) =>
      modelAdapter(model, { tools: [look] }).evaluate(task.bind({ request: "go" }), {
        session,
        budget,
        calls: directCalls({ execution: "e", clock }),
        ...(deadline !== undefined && { deadline }),
      });
    const first = new Session({ id: "s", createdAt: 0, slices: [spentSlice] });
    expect(await errorOf(work(first, { calls: 3 }))).toMatchObject({
      code: "budget_exceeded",
      fields: { unit: "calls" },
    });
    const second = new Session({ id: "s", createdAt: 0, slices: [spentSlice] });
    second.restore(parseSnapshot(snapshotText(first.snapshot())));
    expect(second.query(spentSlice).latest()).toMatchObject({ calls: 3, tokens: 360 });
    expect(await errorOf(work(second, { tokens: 480 }))).toMatchObject({
      code: "budget_exceeded",
      fields: { unit: "tokens" },
    });
    expect(model.requests.length).toBe(4);
    expect(await errorOf(work(second, {}, clock.now()))).toMatchObject({ code: "deadline_exceeded" });
    expect(model.requests.length).toBe(4);
  });
});
