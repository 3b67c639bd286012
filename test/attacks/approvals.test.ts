// Approvals that are not what they seem: borrowed names, copied records, decisions at the last moment.
import { describe, expect, it } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import { why } from "../../src/client/why.ts";
import type { ApprovalRecord, ApproveOptions } from "../../src/core/approval.ts";
import { voteId } from "../../src/core/approval-votes.ts";
import type { Context } from "../../src/core/context.ts";
import { type Workflow, workflow } from "../../src/core/workflow.ts";
import { errorOf, HOUR, openWorld, STORES, type World } from "../behaviour/harness.ts";

const ACTION = { tool: "refunds.issue", arguments: { cents: 4200 } };
const OPTIONS: ApproveOptions = { action: ACTION, approvers: ["ann", "role:manager"] };

/** Starts a run that asks, and gives the id of what it asks. */
async function ask(world: World, pawl: Pawl, flow: Workflow<void, unknown>): Promise<string> {
  await pawl.start(flow, undefined, { id: "r" });
  await world.settle();
  const [approval] = (await pawl.approvals.list({ run: "r" })).approvals;
  if (approval === undefined) throw new Error("it asks nothing");
  return approval.id;
}

function issue(ctx: Context, issued: string[], approval: ApprovalRecord): Promise<void> {
  const spec = { idempotent: true, needs: { approval, action: ACTION }, do: () => void issued.push(approval.id) };
  return ctx.effect("issue", spec);
}

function codeOf(error: Record<string, unknown>): unknown {
  return error["code"];
}

describe.each(STORES)("an approval on %s", (store) => {
  it("X-23 I15 nobody gets a role by going by its name", async () => {
    const world = await openWorld(store);
    const flow = workflow("flow", async (ctx) => (await ctx.approve("refund", OPTIONS)).by);
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    const error = await errorOf(pawl.approvals.decide(id, { decision: "approved", by: "role:manager" }));
    expect(error).toMatchObject({ code: "approval_mismatch", fields: { reason: "wrong_role" } });
    expect((await pawl.approvals.list({ by: "role:manager" })).approvals).toEqual([]);
    await pawl.approvals.decide(id, { decision: "approved", by: "eve", roles: ["role:manager"] });
    expect(await pawl.get("r").result()).toBe("eve");
  });

  it("Q6 I26 a record that nobody gave to the run is no approval, however well it is made", async () => {
    const world = await openWorld(store);
    const issued: string[] = [];
    const flow = workflow("flow", async (ctx) => {
      const denied = await ctx.approve("refund", { ...OPTIONS, onDenied: "branch" });
      const forged: ApprovalRecord = { ...denied, decision: "approved" };
      const codes: unknown[] = [];
      for (const approval of [forged, { ...forged, id: "another" }, undefined]) {
        const error = await errorOf((async () => issue(ctx, issued, approval as ApprovalRecord))());
        codes.push([error["code"], (error["fields"] as { reason?: string } | undefined)?.reason]);
      }
      return codes;
    });
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    await pawl.approvals.decide(id, { decision: "denied", by: "ann" });
    const refused = ["approval_mismatch", "not_approved"];
    expect(await pawl.get("r").result()).toEqual([refused, refused, refused]);
    expect(issued).toEqual([]);
  });

  it("Q6 X-23 an approval that was used is not used again by a later generation", async () => {
    const world = await openWorld(store);
    const issued: string[] = [];
    const flow = workflow("flow", async (ctx, before?: ApprovalRecord): Promise<void> => {
      const approval = before ?? (await ctx.approve("refund", OPTIONS));
      await issue(ctx, issued, approval);
      if (before === undefined) await ctx.continueAs(approval);
    });
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow as Workflow<void, unknown>);
    await pawl.approvals.decide(id, { decision: "approved", by: "ann" });
    expect(await errorOf(pawl.get("r").result())).toMatchObject({ code: "approval_mismatch" });
    expect(issued).toEqual([id]);
  });

  it("X-23 Q6 an approval that ran out while nobody worked is not used, though its run had got as far as that", async () => {
    const world = await openWorld(store);
    const issued: string[] = [];
    const flow = workflow("flow", async (ctx) => {
      const approval = await ctx.approve("refund", { ...OPTIONS, validFor: "1h" });
      await issue(ctx, issued, approval);
    });
    const worker = await world.open([flow]);
    const id = await ask(world, worker, flow);
    const commit = world.store.commit.bind(world.store);
    world.store.commit = async (batch) => {
      const verdicts = await commit(batch);
      // The process dies behind the plan and before the action.
      if (batch.runs.some(({ entries }) => entries.some(({ type }) => type === "effect.planned"))) world.kill(worker);
      return verdicts;
    };
    void worker.approvals.decide(id, { decision: "approved", by: "ann" });
    await world.settle();
    expect(await world.journal("r")).toContain("effect.planned issue");
    await world.advance(3 * HOUR);
    const second = await world.restart([flow]);
    const error = await errorOf(second.get("r").result());
    expect(error).toMatchObject({ code: "approval_mismatch", fields: { reason: "expired" } });
    expect(issued).toEqual([]);
  });

  it("I15 other changes than those that were asked for come too late, and that is told", async () => {
    const world = await openWorld(store);
    const flow = workflow("flow", async (ctx) => {
      const asked = await ctx.approve("refund", { ...OPTIONS, onChanges: "branch" });
      await ctx.waitFor("go on");
      return asked.arguments;
    });
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    const changes = (cents: number) =>
      pawl.approvals.decide(id, { decision: "changes_requested", by: "ann", arguments: { cents } });
    await changes(2100);
    await world.settle();
    expect(await changes(2100)).toMatchObject({ decision: "changes_requested", missing: 0 });
    expect(await errorOf(changes(100))).toMatchObject({ code: "approval_decided", fields: { by: "ann" } });
    await pawl.signal("r", "go on");
    expect(await pawl.get("r").result()).toEqual({ cents: 2100 });
  });

  it("I15 S4-37 P5 a decision at the very moment of the expiry is not acknowledged, since it may not have been seen", async () => {
    const world = await openWorld(store);
    const flow = workflow("flow", async (ctx) => {
      const answer = await ctx.approve("refund", { ...OPTIONS, timeout: "1h", onExpired: "branch" });
      return answer.decision;
    });
    const pawl = await world.open([flow]);
    const client = await world.open();
    const id = await ask(world, pawl, flow);
    const commit = world.store.commit.bind(world.store);
    let late: Promise<unknown> | null = null;
    world.store.commit = async (batch) => {
      // The owner has looked for votes, and is about to write that there was none.
      const isExpiry = batch.runs.some(({ entries }) => entries.some(({ type }) => type === "approval.decided"));
      if (isExpiry) {
        late ??= client.approvals.decide(id, { decision: "approved", by: "ann" }).catch((error: unknown) => error);
        await late;
      }
      return commit(batch);
    };
    await world.advance(HOUR);
    expect(await late).toMatchObject({ code: "approval_expired" });
    expect(await pawl.get("r").result()).toBe("expired");
  });

  it("I15 what votes have decided no longer waits for a person, also while nobody works; a vote does not change", async () => {
    const world = await openWorld(store);
    const flow = workflow("flow", async (ctx) => (await ctx.approve("refund", { ...OPTIONS, quorum: 2 })).by);
    const first = await world.open([flow]);
    const id = await ask(world, first, flow);
    world.kill(first);
    const client = await world.open();
    const vote = (by: string, decision: "approved" | "denied") =>
      client.approvals.decide(id, { decision, by, roles: ["manager"] });
    expect(await vote("ann", "approved")).toMatchObject({ missing: 1 });
    const error = await errorOf(vote("ann", "denied"));
    expect(error).toMatchObject({ code: "approval_decided" });
    expect(error.message).toContain('ann has said "approved" about it before');
    expect((await client.approvals.list()).approvals).toMatchObject([{ id, status: "open", votes: [{ by: "ann" }] }]);
    await vote("eve", "approved");
    expect((await client.approvals.list()).approvals).toEqual([]);
    expect(await client.approvals.get(id)).toMatchObject({ status: "decided", decision: { by: "eve" } });
    const { text } = await why(client, "r");
    expect(text.join("\n")).toContain("is decided: approved by eve. The run goes on when a worker takes it up.");
    expect(text.join("\n")).not.toContain("To decide about");
    const second = await world.restart([flow]);
    expect(await second.get("r").result()).toBe("eve");
  });

  it("Q6 X-23 S2-59 a fork does nothing with what its source was given; a retry does, once, and a second one nothing", async () => {
    const world = await openWorld(store);
    const issued: string[] = [];
    let isDown = true;
    const flow = workflow("flow", async (ctx) => {
      const approval = await ctx.approve("refund", OPTIONS);
      await ctx.effect("issue", {
        needs: { approval, action: ACTION },
        do: () => {
          if (isDown) throw new Error("the bank is closed");
          issued.push(ctx.run.id);
        },
      });
    });
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    await pawl.approvals.decide(id, { decision: "approved", by: "ann" });
    await errorOf(pawl.get("r").result());
    isDown = false;
    const mismatch = { code: "approval_mismatch", fields: { reason: "not_approved", approval: id } };
    expect(await errorOf((await pawl.fork("r", { at: "issue" })).result())).toMatchObject(mismatch);
    const retried = await pawl.retry("r");
    await retried.result();
    expect(await errorOf((await pawl.retry("r")).result())).toMatchObject(mismatch);
    expect(await errorOf((await pawl.fork(retried.id, { at: "issue" })).result())).toMatchObject(mismatch);
    expect(issued).toEqual([retried.id]);
    // Forked before the approval, it asks for its own.
    const asking = await pawl.fork("r", { at: "refund" });
    await world.settle();
    const [open] = (await pawl.approvals.list({ run: asking.id })).approvals;
    await pawl.approvals.decide(open?.id ?? "", { decision: "approved", by: "ann" });
    await asking.result();
    expect(issued).toEqual([retried.id, asking.id]);
  });

  it("Q6 S2-59 a retry does not do again what was done under an approval and undone", async () => {
    const world = await openWorld(store);
    const done: string[] = [];
    const flow = workflow("flow", async (ctx) => {
      const approval = await ctx.approve("refund", OPTIONS);
      await ctx.effect("issue", {
        idempotent: true,
        needs: { approval, action: ACTION },
        do: () => void done.push("issued"),
        undo: () => void done.push("undone"),
      });
      throw new Error("broken");
    });
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    await pawl.approvals.decide(id, { decision: "approved", by: "ann" });
    await errorOf(pawl.get("r").result());
    const mismatch = { code: "approval_mismatch", fields: { reason: "not_approved", approval: id } };
    expect(await errorOf((await pawl.retry("r")).result())).toMatchObject(mismatch);
    expect(done).toEqual(["issued", "undone"]);
  });

  it("X-23 S2-61 what was done under the rules of its day stays done when the policy, the tool or the roles change", async () => {
    const world = await openWorld(store);
    const issued: string[] = [];
    const deploy = (policyVersion: string, approver: string) =>
      workflow("flow", async (ctx) => {
        const action = { ...ACTION, version: policyVersion };
        const approval = await ctx.approve("refund", { action, approvers: [approver], policyVersion });
        const needs = { approval, action, policyVersion, approvers: [approver] };
        await ctx.effect("issue", { idempotent: true, needs, do: ({ key }) => void issued.push(key) });
        await ctx.waitFor("go");
        // Now it counts by the rules of today, and once.
        return codeOf(await errorOf((async () => ctx.effect("again", { needs, do: () => {} }))()));
      });
    const flow = deploy("1", "ann");
    const first = await world.open([flow]);
    const id = await ask(world, first, flow as Workflow<void, unknown>);
    await first.approvals.decide(id, { decision: "approved", by: "ann" });
    await world.settle();
    const second = await world.restart([deploy("2", "eve")]);
    await second.signal("r", "go");
    expect(await second.get("r").result()).toBe("approval_mismatch");
    expect(issued).toEqual(["r/issue"]);
  });

  it("I15 X-23 whoever approved among others is told that it was denied or has expired, not that it is approved", async () => {
    const world = await openWorld(store);
    const flow = workflow("flow", async (ctx) =>
      ctx.approve("refund", { ...OPTIONS, approvers: ["ann", "bob", "eve"], quorum: 2, timeout: "1h" }),
    );
    const approve = { decision: "approved", by: "ann" } as const;
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    expect(await pawl.approvals.decide(id, approve)).toMatchObject({ missing: 1 });
    world.kill(pawl);
    const client = await world.open();
    await client.approvals.decide(id, { decision: "denied", by: "bob" });
    const denied = { code: "approval_decided", fields: { decision: "denied", by: "bob" } };
    // While no worker has taken it up, and after.
    for (const isTaken of [false, true]) {
      if (isTaken) await errorOf((await world.restart([flow])).get("r").result());
      const other = await world.open();
      expect(await errorOf(other.approvals.decide(id, approve))).toMatchObject(denied);
      expect(await errorOf(other.approvals.decide(id, { ...approve, by: "eve" }))).toMatchObject(denied);
    }
    const worker = await world.open([flow]);
    await worker.start(flow, undefined, { id: "late" });
    await world.settle();
    const [open] = (await worker.approvals.list({ run: "late" })).approvals;
    await worker.approvals.decide(open?.id ?? "", approve);
    await world.advance(2 * HOUR);
    expect(await errorOf(worker.approvals.decide(open?.id ?? "", approve))).toMatchObject({ code: "approval_expired" });
  });

  it("X-23 a call that is refused for another reason uses no approval up", async () => {
    const world = await openWorld(store);
    const issued: string[] = [];
    const flow = workflow("flow", async (ctx) => {
      const approval = await ctx.approve("refund", OPTIONS);
      const spec = { idempotent: true, needs: { approval, action: ACTION }, do: () => void issued.push("issued") };
      const inStep = await ctx.step("inner", () => errorOf((async () => ctx.effect("issue", spec))()).then(codeOf));
      const late = codeOf(await errorOf((async () => ctx.effect("issue", spec, { timeout: "soon" }))()));
      await ctx.effect("issue", spec);
      return [inStep, late, codeOf(await errorOf((async () => ctx.effect("issue", spec))()))];
    });
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    await pawl.approvals.decide(id, { decision: "approved", by: "ann" });
    expect(await pawl.get("r").result()).toEqual(["call_in_step", "invalid_argument", "approval_mismatch"]);
    expect(issued).toEqual(["issued"]);
  });
});

it("I15 no person's second vote has the id of another person's first", () => {
  const approval = { id: "a", quorum: 2 };
  expect(voteId(approval, "ann", 1)).not.toBe(voteId(approval, "ann:2", 0));
});
