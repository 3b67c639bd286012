import { type ApprovalNotification, workflow } from "pawl";
import { crashEverywhere, recorder, testEngine } from "pawl/testing";
import { describe, expect, it, onTestFinished } from "vitest";

const APPROVAL = {
  approvers: ["ann"],
  escalate: [
    { after: "24h", action: "notify" },
    { after: "36h", action: "escalate", to: ["role:head"] },
  ],
} as const;

describe("a run that asks people, crashed at every point", () => {
  it("I15 S2-53 S4-38 issues once and only after its approval, which came after two levels of escalation", async () => {
    const outside = recorder();
    const refund = workflow("refund", async (ctx, cents: number) => {
      const draft = await ctx.step("draft", ({ key }) => outside.record("draft", { cents }, key));
      const approved = await ctx.approve("refund", { ...APPROVAL, action: { tool: "issue", arguments: { cents } } });
      await ctx.step("issue", ({ key }) => outside.record("issue", { cents }, key));
      return { draft: draft !== null, by: approved.by, level: approved.level, waitedMs: approved.waitedMs };
    });
    const report = await crashEverywhere(refund, 4200, {
      recorder: outside,
      script: async (run, engine) => {
        await engine.until(async () => (await engine.approvals.list()).approvals[0]?.level === 2);
        await engine.decide(run.id, "refund", { decision: "approved", by: "hob", roles: ["head"] });
      },
    });
    expect(report.ok, report.toString()).toBe(true);
    expect(report.points.length).toBeGreaterThan(10);
  });

  it("B55 I15 I26 Q6 begins each of three tools once, which are asked for at once and approved one by one", async () => {
    const outside = recorder();
    const tools = ["mail", "refund", "close"];
    const turn = workflow("turn", async (ctx) =>
      ctx.map(tools, async (tool) => {
        const action = { tool, arguments: { order: 7 } };
        const approval = await ctx.approve(tool, { action, approvers: ["ann"] });
        // Nothing guards it: whoever begins it twice does it twice.
        await ctx.effect(tool, { needs: { approval, action }, do: () => outside.record(tool) });
        return approval.by;
      }),
    );
    const report = await crashEverywhere(turn, undefined, {
      recorder: outside,
      script: async (run, engine) => {
        for (const tool of tools) await engine.decide(run.id, tool, { decision: "approved", by: "ann" });
      },
    });
    expect(report.toString()).toMatch(/^ok: /);
    expect(report.isComplete).toBe(true);
    expect(report.outcome).toContain("succeeded with [ 'ann', 'ann', 'ann' ]");
    expect(outside.requests.map(({ name }) => name)).toEqual(tools);
  });

  it("C-14 never issues what was denied, or what nobody decided", async () => {
    const outside = recorder();
    const refund = workflow("refund", async (ctx, cents: number) => {
      const { decision } = await ctx.approve("refund", {
        ...APPROVAL,
        onDenied: "branch",
        onExpired: "branch",
        action: { tool: "issue", arguments: { cents } },
      });
      if (decision === "approved") await ctx.step("issue", ({ key }) => outside.record("issue", { cents }, key));
      return decision;
    });
    const denied = await crashEverywhere(refund, 1, {
      recorder: outside,
      script: (run, engine) => engine.decide(run.id, "refund", { decision: "denied", by: "ann" }),
    });
    expect(denied.ok, denied.toString()).toBe(true);
    const expired = await crashEverywhere(refund, 1, { recorder: outside });
    expect(expired.ok, expired.toString()).toBe(true);
    expect(outside.effects).toEqual([]);
  });
});

it("I15 S4-16 a script that waits for its approval is made again with fakes of the test's own, though its process dies while it waits", async () => {
  const issued: string[] = [];
  const refund = workflow("refund", async (ctx) => {
    await ctx.step("draft", () => 1);
    await ctx.approve("refund", { approvers: ["ann"], action: { tool: "issue", arguments: 1 } });
    await ctx.effect("issue", {
      do: ({ key }) => void issued.push(key),
      detect: ({ key }) => (issued.includes(key) ? { found: true, value: undefined } : { found: false }),
    });
  });
  const report = await crashEverywhere(refund, undefined, {
    fresh: () => void issued.splice(0),
    observe: () => issued.length,
    script: (run, engine) => engine.decide(run.id, "refund", { decision: "approved", by: "ann" }),
  });
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.outcome).toMatch(/^succeeded/);
  expect(issued).toHaveLength(1);
});

it("S4-16 a script's condition that its process dies over is asked again by the next one", async () => {
  const waiting = workflow("waiting", async (ctx) => ctx.waitFor<number>("go"));
  const report = await crashEverywhere(waiting, undefined, {
    fresh: () => {},
    script: (run, engine) =>
      engine.until(async () => {
        await run.signal("go", 1, { id: "once" });
        return true;
      }),
  });
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.points.some(({ kind }) => kind === "signal")).toBe(true);
});

it("S4-35 a level that cancels the run does so once, whatever crashes, and nothing is issued", async () => {
  const outside = recorder();
  const refund = workflow("refund", async (ctx, cents: number) => {
    await ctx.step("draft", ({ key }) => outside.record("draft", { cents }, key));
    const escalate = [{ after: "24h", action: "cancel" }] as const;
    await ctx.approve("refund", { approvers: ["ann"], action: { tool: "issue", arguments: { cents } }, escalate });
    await ctx.step("issue", ({ key }) => outside.record("issue", { cents }, key));
  });
  const report = await crashEverywhere(refund, 4200, { recorder: outside });
  expect(report.ok, report.toString()).toBe(true);
  expect(report.outcome).toContain("cancelled");
  expect(outside.effects.filter(({ name }) => name === "issue")).toEqual([]);
});

it("the test engine decides in virtual time, and its notifiers are told", async () => {
  const told: ApprovalNotification[] = [];
  const ask = workflow("ask", async (ctx) =>
    ctx.approve("refund", { ...APPROVAL, action: { tool: "t", arguments: 1 } }),
  );
  const notifier = { name: "fake", notify: (one: ApprovalNotification) => void told.push(one) };
  const engine = await testEngine({ workflows: [ask], notifiers: [notifier] });
  onTestFinished(() => engine.close());
  const run = await engine.start(ask);
  await engine.advance("30h");
  await engine.decide(run.id, "refund", { decision: "approved", by: "ann" });
  expect(await run.result()).toMatchObject({ by: "ann", level: 1 });
  expect(told.map(({ level }) => level)).toEqual([0, 1]);
});
