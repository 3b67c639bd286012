import { describe, expect, it } from "vitest";
import type { Approved, ApproveOptions } from "../../src/core/approval.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, HOUR, MINUTE, openWorld, STORES, type World } from "./harness.ts";

const ACTION = { tool: "refunds.issue", version: "2", arguments: { order: "o-1", cents: 4200 } };
const OPTIONS: ApproveOptions = { action: ACTION, approvers: ["ann", "role:manager"] };


describe.each(STORES)("approvals on %s", (store) => {
  it("S2-53 S2-28 I15 waits for a person and goes on with an immutable record of who, when, from where and why", async () => {
    const world = await openWorld(store);
    const asking = workflow("asking", async (ctx) => {
      const approved: Approved = await ctx.approve("refund", { ...OPTIONS, actor: "bot", policyVersion: "7" });
      return { isFrozen: Object.isFrozen(approved) && Object.isFrozen(approved.action.arguments), approved };
    });
    const pawl = await world.open([asking]);
    const run = await pawl.start(asking, undefined, { id: "r" });
    await world.settle();
    expect((await run.status()).waits).toMatchObject([{ kind: "approval", key: "approval:refund" }]);
    const [open] = (await pawl.approvals.list()).approvals;
    expect(open).toMatchObject({ run: "r", name: "refund", action: ACTION, risk: "medium", status: "open", votes: [] });
    await world.advance(3 * HOUR);
    await pawl.approvals.decide(open?.id ?? "", { decision: "approved", by: "ann", reason: "fine", from: "10.0.0.7" });
    const { approved, isFrozen } = await run.result();
    expect(isFrozen).toBe(true);
    expect(approved).toMatchObject({
      id: open?.id,
      hash: open?.hash,
      action: ACTION,
      decision: "approved",
      by: "ann",
      reason: "fine",
      from: "10.0.0.7",
      waitedMs: 3 * HOUR,
      votes: [{ by: "ann", decision: "approved" }],
    });
    expect(await world.journal(run)).toEqual([
      "run.started",
      "approval.requested refund",
      "approval.decided refund",
      "run.succeeded",
    ]);
    expect((await pawl.approvals.list()).approvals).toEqual([]);
  });
});
