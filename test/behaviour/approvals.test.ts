import { describe, expect, it } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import type { Approved, ApproveOptions } from "../../src/core/approval.ts";
import { type Workflow, workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, HOUR, openWorld, STORES, type World } from "./harness.ts";
import { Kills } from "./kills.ts";

const ACTION = { tool: "refunds.issue", version: "2", arguments: { order: "o-1", cents: 4200 } };
const OPTIONS: ApproveOptions = { action: ACTION, approvers: ["ann", "role:manager"] };

/** A workflow that asks, and gives back the decision's record. */
function asking(options: Partial<ApproveOptions> = {}): Workflow<void, Approved> {
  return workflow("asking", async (ctx) => ctx.approve("refund", { ...OPTIONS, ...options }));
}

/** Starts a run that asks, and gives the id of what it asks. */
async function ask(world: World, pawl: Pawl, flow: Workflow<void, unknown>, id = "r"): Promise<string> {
  await pawl.start(flow, undefined, { id });
  await world.settle();
  const [approval] = (await pawl.approvals.list({ run: id })).approvals;
  if (approval === undefined) throw new Error("it asks nothing");
  return approval.id;
}

describe.each(STORES)("approvals on %s", (store) => {
  it("S2-53 S2-56 I15 S2-79 waits for a person and goes on with an immutable record of who, when, from where, why and how long", async () => {
    const world = await openWorld(store);
    const flow = workflow("asking", async (ctx) => {
      const approved: Approved = await ctx.approve("refund", { ...OPTIONS, actor: "bot", policyVersion: "7" });
      return { isFrozen: Object.isFrozen(approved) && Object.isFrozen(approved.action.arguments), approved };
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    expect((await run.status()).waits).toMatchObject([{ kind: "approval", key: "approval:refund" }]);
    const [open] = (await pawl.approvals.list()).approvals;
    expect(open).toMatchObject({ run: "r", name: "refund", action: ACTION, risk: "medium", status: "open", votes: [] });
    const id = open?.id ?? "";
    await world.advance(3 * HOUR);
    expect(await pawl.approvals.get(id)).toMatchObject({ waitedMs: 3 * HOUR, approvers: ["ann", "role:manager"] });
    await pawl.approvals.decide(id, { decision: "approved", by: "ann", reason: "fine", from: "10.0.0.7" });
    const { approved, isFrozen } = await run.result();
    expect(isFrozen).toBe(true);
    expect(approved).toMatchObject({
      id,
      hash: open?.hash,
      action: ACTION,
      decision: "approved",
      by: "ann",
      reason: "fine",
      from: "10.0.0.7",
      waitedMs: 3 * HOUR,
      votes: [{ by: "ann", decision: "approved" }],
    });
    const journal = ["run.started", "approval.requested refund", "approval.decided refund", "run.succeeded"];
    expect(await world.journal(run)).toEqual(journal);
    expect((await pawl.approvals.list()).approvals).toEqual([]);
    expect(await pawl.approvals.get(id)).toMatchObject({ status: "decided", decision: approved, waitedMs: 3 * HOUR });
  });

  it("S2-54 S2-55 S2-68 asks once over a kill right after the request, and goes on with a decision made before the restart", async () => {
    const world = await openWorld(store);
    const flow = asking();
    const client = await world.open();
    const first = await world.open([flow]);
    const id = await ask(world, first, flow);
    world.kill(first);
    expect(await client.approvals.list()).toMatchObject({ approvals: [{ id, status: "open" }], cursor: null });
    await client.approvals.decide(id, { decision: "approved", by: "ann" });
    const second = await world.restart([flow]);
    expect(await second.get("r").result()).toMatchObject({ by: "ann", decision: "approved" });
    expect((await world.journal("r")).filter((entry) => entry.startsWith("approval.requested"))).toHaveLength(1);
  });

  it("S2-54 is decided while a restart is under way, and after one", async () => {
    const world = await openWorld(store);
    const flow = asking();
    const first = await world.open([flow]);
    const [during, after] = [await ask(world, first, flow, "during"), await ask(world, first, flow, "after")];
    world.killAll();
    await world.fence();
    const other = await world.open();
    const [second] = await Promise.all([
      world.open([flow]),
      other.approvals.decide(during, { decision: "approved", by: "ann" }),
    ]);
    expect(await second.get("during").result()).toMatchObject({ by: "ann" });
    await second.idle();
    await second.approvals.decide(after, { decision: "approved", by: "eve", roles: ["manager"] });
    expect(await second.get("after").result()).toMatchObject({ by: "eve" });
  });

  it("B55 Q6 three tools that are approved one by one, with a kill after every write: each begins once", async () => {
    const world = await openWorld(store);
    const tools = ["mail", "refund", "close"];
    const begun: string[] = [];
    const flow = workflow("turn", async (ctx) =>
      ctx.map(tools, async (tool) => {
        const action = { ...ACTION, tool };
        const approval = await ctx.approve(tool, { ...OPTIONS, action });
        await ctx.effect(tool, {
          needs: { approval, action },
          do: () => void begun.push(tool),
          detect: () => (begun.includes(tool) ? { found: true, value: undefined } : { found: false }),
        });
      }),
    );
    // What begins again after a crash writes a mark: a kill after that, too, would go on for ever.
    const kills = new Kills(world, ({ runs }) =>
      runs.some(({ entries }) => entries.some(({ type }) => /^(run|approval|effect)\./.test(type))),
    );
    void (await world.open([flow])).start(flow, undefined, { id: "r" });
    for (const tool of tools) {
      const pawl = await kills.goOn([flow]);
      const open = (await pawl.approvals.list()).approvals.find(({ name }) => name === tool);
      void pawl.approvals.decide(open?.id ?? "", { decision: "approved", by: "ann" });
    }
    await kills.goOn([flow]);
    expect((await world.store.run("r"))?.state).toBe("succeeded");
    expect(begun).toEqual(tools);
    expect(kills.count).toBeGreaterThanOrEqual(8);
  });

  it("S2-53 C-14 S2-79 a denial fails the run with its reason, and the step behind it never runs", async () => {
    const world = await openWorld(store);
    let issued = 0;
    const flow = workflow("asking", async (ctx) => {
      await ctx.approve("refund", OPTIONS);
      return ctx.step("issue", () => ++issued);
    });
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    await pawl.approvals.decide(id, { decision: "denied", by: "ann", reason: "paid already" });
    const error = await errorOf(pawl.get("r").result());
    expect(error).toMatchObject({
      code: "approval_denied",
      fields: { approval: id, by: "ann", reason: "paid already" },
    });
    expect(error.message).toContain("paid already");
    expect(error["fields"]).not.toHaveProperty("compensate");
    expect((await pawl.get("r").status()).stopReason).toBe("approval_denied");
    expect(issued).toBe(0);
  });

  it.each(["fail", "branch"] as const)(
    "C-14 onDenied %s leaves what was done, or gives the body the decision",
    async (onDenied) => {
      const world = await openWorld(store);
      const flow = workflow("asking", async (ctx) => {
        if (onDenied === "branch") return ctx.approve("refund", { ...OPTIONS, onDenied });
        return ctx.approve("refund", { ...OPTIONS, onDenied });
      });
      const pawl = await world.open([flow]);
      const id = await ask(world, pawl, flow);
      await pawl.approvals.decide(id, { decision: "denied", by: "ann" });
      const result = pawl.get("r").result();
      if (onDenied === "branch") expect(await result).toMatchObject({ decision: "denied", by: "ann" });
      else expect((await errorOf(result))["fields"]).toMatchObject({ compensate: false });
    },
  );

  it("X-23 Q6 requested changes carry the edited arguments, which are another action with another hash", async () => {
    const world = await openWorld(store);
    const flow = workflow("asking", async (ctx) => {
      let given: unknown = ACTION.arguments;
      for (const round of ["first", "second"]) {
        try {
          return await ctx.approve(round, { ...OPTIONS, action: { ...ACTION, arguments: given } });
        } catch (error) {
          const { code, fields } = error as { code: string; fields: { arguments: unknown } };
          if (code !== "changes_requested") throw error;
          given = fields.arguments;
        }
      }
      throw new Error("never approved");
    });
    const pawl = await world.open([flow]);
    const first = await ask(world, pawl, flow);
    const { hash } = await pawl.approvals.get(first);
    const edited = { order: "o-1", cents: 2100 };
    await pawl.approvals.decide(first, { decision: "changes_requested", by: "ann", arguments: edited, reason: "half" });
    await world.settle();
    const [second] = (await pawl.approvals.list()).approvals;
    expect(second).toMatchObject({ name: "second", action: { arguments: edited } });
    expect(second?.hash).not.toBe(hash);
    await pawl.approvals.decide(second?.id ?? "", { decision: "approved", by: "ann" });
    expect(await pawl.get("r").result()).toMatchObject({ decision: "approved", action: { arguments: edited } });
  });

  it("I15 of two people who decide at once one wins, and the other is told who and what", async () => {
    const world = await openWorld(store);
    const flow = asking();
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    const others = await Promise.all([world.open(), world.open()]);
    const [ann, eve] = await Promise.allSettled([
      others[0].approvals.decide(id, { decision: "approved", by: "ann" }),
      others[1].approvals.decide(id, { decision: "denied", by: "eve", roles: ["manager"] }),
    ]);
    const lost = [ann, eve].filter((one) => one.status === "rejected");
    expect(lost).toHaveLength(1);
    const winner = ann.status === "fulfilled" ? "ann" : "eve";
    const decision = winner === "ann" ? "approved" : "denied";
    expect(lost[0]?.reason).toMatchObject({
      code: "approval_decided",
      fields: { by: winner, decision, reason: "consumed" },
    });
    await Promise.allSettled([pawl.get("r").result()]);
    expect((await pawl.approvals.get(id)).decision).toMatchObject({ by: winner, decision });
    // The same decision again is the same decision; another one comes too late for good.
    const again = winner === "ann" ? { by: "ann" } : { by: "eve", roles: ["manager"] };
    expect(await pawl.approvals.decide(id, { decision, ...again })).toMatchObject({ missing: 0 });
    expect(
      await errorOf(pawl.approvals.decide(id, { decision: "denied", by: "zoe", roles: ["manager"] })),
    ).toMatchObject({
      code: "approval_decided",
      fields: { by: winner },
    });
  });

  it("I15 X-23 two of three must approve: the votes are folded in order, and one denial denies", async () => {
    const world = await openWorld(store);
    const flow = asking({ approvers: ["ann", "bob", "eve"], quorum: 2, onDenied: "branch" });
    const pawl = await world.open([flow]);
    const [agreed, denied] = [await ask(world, pawl, flow, "agreed"), await ask(world, pawl, flow, "denied")];
    expect(await pawl.approvals.decide(agreed, { decision: "approved", by: "ann" })).toMatchObject({ missing: 1 });
    await pawl.approvals.decide(agreed, { decision: "approved", by: "ann" });
    await world.settle();
    expect(await pawl.approvals.get(agreed)).toMatchObject({ status: "open", votes: [{ by: "ann" }] });
    // A vote does not change, nor does it count twice, also over a restart.
    expect(await errorOf(pawl.approvals.decide(agreed, { decision: "denied", by: "ann" }))).toMatchObject({
      code: "approval_decided",
    });
    const second = await world.restart([flow]);
    await second.idle();
    await second.approvals.decide(agreed, { decision: "approved", by: "eve" });
    expect(await second.get("agreed").result()).toMatchObject({
      decision: "approved",
      by: "eve",
      votes: [{ by: "ann" }, { by: "eve" }],
    });
    await second.approvals.decide(denied, { decision: "approved", by: "ann" });
    await second.approvals.decide(denied, { decision: "denied", by: "bob" });
    expect(await second.get("denied").result()).toMatchObject({ decision: "denied", by: "bob" });
  });

  it("X-23 E-14 refuses a person without the role, the actor where four eyes are needed, and a decision about another action", async () => {
    const world = await openWorld(store);
    const flow = asking({ approvers: ["ann", "bot", "role:manager"], actor: "bot", fourEyes: true });
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    const refused = async (decision: object) =>
      errorOf(pawl.approvals.decide(id, { decision: "approved", by: "ann", ...decision }));
    expect(await refused({ by: "zoe" })).toMatchObject({ code: "approval_mismatch", fields: { reason: "wrong_role" } });
    expect((await refused({ by: "zoe", roles: ["clerk"] })).message).toContain("Ask one of: ann, bot, role:manager");
    expect(await refused({ by: "bot" })).toMatchObject({ fields: { reason: "wrong_role", fourEyes: true } });
    expect(await refused({ hash: "seen-before" })).toMatchObject({ fields: { reason: "changed_action" } });
    expect(await errorOf(pawl.approvals.decide("nothing", { decision: "approved", by: "ann" }))).toMatchObject({
      code: "approval_not_found",
    });
    expect((await pawl.approvals.get(id)).votes).toEqual([]);
    await pawl.approvals.decide(id, { decision: "approved", by: "zoe", roles: ["role:manager"] });
    expect(await pawl.get("r").result()).toMatchObject({ by: "zoe", votes: [{ roles: ["role:manager"] }] });
  });

  it("I15 the owner judges a message again: one that went past the client decides nothing and blocks nobody", async () => {
    const world = await openWorld(store);
    const flow = asking();
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    const { hash } = await pawl.approvals.get(id);
    const forge = (vote: object, messageId: string) => {
      const data = JSON.stringify({ approval: id, hash, decision: "approved", by: "ann", roles: [], ...vote });
      return world.store.deliver({ to: "r", id: messageId, kind: "approval", name: id, data });
    };
    await forge({ by: "mallory" }, `approval:${id}`);
    await forge({ hash: "of another action" }, `approval:${id}#2`);
    await pawl.idle();
    await world.settle();
    expect((await pawl.get("r").status()).state).toBe("waiting");
    expect((await pawl.approvals.get(id)).votes).toEqual([]);
    await pawl.approvals.decide(id, { decision: "approved", by: "ann" });
    expect(await pawl.get("r").result()).toMatchObject({ by: "ann", votes: [{ by: "ann" }] });
  });

  it("B54 I15 reading decides nothing, however often", async () => {
    const world = await openWorld(store);
    const flow = asking();
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    const before = await world.journal("r");
    for (let i = 0; i < 3; i++) {
      await pawl.approvals.list({ by: "ann" });
      await pawl.approvals.get(id);
      await pawl.get("r").status();
    }
    await world.settle();
    expect(await world.journal("r")).toEqual(before);
    expect(await world.store.inbox("r")).toEqual([]);
    expect((await pawl.approvals.get(id)).status).toBe("open");
  });

  it("lists by person, role, risk and run, page by page", async () => {
    const world = await openWorld(store);
    const flow = workflow("asking", async (ctx, risk: "low" | "high") => {
      const approvers = risk === "low" ? ["ann"] : ["role:manager"];
      return ctx.approve("refund", { ...OPTIONS, approvers, risk });
    });
    const pawl = await world.open([flow]);
    for (const [index, risk] of (["low", "high", "low"] as const).entries())
      await pawl.start(flow, risk, { id: `r${index}` });
    await world.settle();
    const runs = async (query: object) => (await pawl.approvals.list(query)).approvals.map(({ run }) => run);
    expect(await runs({})).toEqual(["r0", "r1", "r2"]);
    expect(await runs({ by: "ann" })).toEqual(["r0", "r2"]);
    expect(await runs({ roles: ["manager"] })).toEqual(["r1"]);
    expect(await runs({ risk: "high" })).toEqual(["r1"]);
    expect(await runs({ run: "r2" })).toEqual(["r2"]);
    const first = await pawl.approvals.list({ by: "ann", limit: 1 });
    expect(first.approvals.map(({ run }) => run)).toEqual(["r0"]);
    expect(await runs({ by: "ann", limit: 1, cursor: first.cursor })).toEqual(["r2"]);
  });

  it("S2-53 a cancelled run no longer asks, and says so to whoever decides", async () => {
    const world = await openWorld(store);
    const flow = asking();
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    await pawl.cancel("r", { reason: "not needed" });
    await world.settle();
    expect((await pawl.approvals.list()).approvals).toEqual([]);
    expect((await pawl.approvals.get(id)).status).toBe("closed");
    const error = await errorOf(pawl.approvals.decide(id, { decision: "approved", by: "ann" }));
    expect(error).toMatchObject({ code: "run_ended", fields: { run: "r", approval: id } });
  });

  it("S2-61 P3 a deployment with another policy follows the journal; other arguments are drift", async () => {
    const world = await openWorld(store);
    const flow = (arguments_: unknown, policyVersion: string) =>
      asking({ action: { ...ACTION, arguments: arguments_ }, policyVersion });
    const first = await world.open([flow(ACTION.arguments, "1")]);
    const id = await ask(world, first, flow(ACTION.arguments, "1"));
    const second = await world.restart([flow({ ...ACTION.arguments, cents: 1 }, "1")]);
    await second.approvals.decide(id, { decision: "approved", by: "ann" });
    await second.idle();
    expect((await second.get("r").status()).parked).toMatchObject({ reason: "replay_drift" });
    const third = await world.restart([flow({ cents: 4200, order: "o-1" }, "2")]);
    await third.resolve("r", "retry");
    expect(await third.get("r").result()).toMatchObject({ policyVersion: "1", by: "ann" });
  });

  it("P10 S2-59 a retry of a later generation asks again what is open there, and nothing of an earlier one", async () => {
    const world = await openWorld(store);
    const flow = workflow("flow", async (ctx, round: number) => {
      const options = { action: { tool: "t", arguments: {} }, approvers: ["ann"], onDenied: "branch" } as const;
      const { decision } = await ctx.approve("leave", options);
      return round === 0 ? ctx.continueAs(1) : decision;
    });
    const pawl = await world.open([flow]);
    const decide = async (run: string, decision: "approved" | "denied") => {
      await world.settle();
      const [open] = (await pawl.approvals.list({ run })).approvals;
      await pawl.approvals.decide(open?.id ?? "", { decision, by: "ann" });
      await world.settle();
    };
    await pawl.start(flow, 0, { id: "r" });
    await decide("r", "denied");
    await pawl.cancel("r");
    const { id } = await pawl.retry("r");
    await decide(id, "approved");
    expect(await pawl.get(id).result()).toBe("approved");
  });

  it("P10 a retry after a denial asks again, under another id, and its times begin anew", async () => {
    const world = await openWorld(store);
    const flow = asking({ escalate: [{ after: "2h", action: "notify" }] });
    const pawl = await world.open([flow]);
    const id = await ask(world, pawl, flow);
    await world.advance(5 * HOUR);
    await pawl.approvals.decide(id, { decision: "denied", by: "ann" });
    await errorOf(pawl.get("r").result());
    const again = await pawl.retry("r");
    await world.settle();
    const [open] = (await pawl.approvals.list()).approvals;
    expect(open).toMatchObject({ run: again.id, level: 0, waitedMs: 0 });
    expect(open?.id).not.toBe(id);
    await world.advance(3 * HOUR);
    expect((await world.journal(again)).filter((entry) => entry.startsWith("approval.escalated"))).toHaveLength(1);
    await pawl.approvals.decide(open?.id ?? "", { decision: "approved", by: "ann" });
    expect(await again.result()).toMatchObject({ decision: "approved", waitedMs: 3 * HOUR });
  });

  it("P4 P5 decides a race: an approval beside a timer and a step, over a restart", async () => {
    const world = await openWorld(store);
    const hold = gate<string>();
    const flow = workflow("racing", async (ctx) => {
      const approved = ctx.approve("refund", OPTIONS).then(({ by }) => `approved by ${by}`);
      const slow = ctx.step("slow", () => hold.passed);
      const first = await Promise.race([approved, ctx.sleep("5h").then(() => "slept")]);
      return [first, await slow];
    });
    const first = await world.open([flow]);
    const id = await ask(world, first, flow);
    await first.approvals.decide(id, { decision: "approved", by: "ann" });
    await world.settle();
    const second = await world.restart([flow]);
    hold.open("done");
    expect(await second.get("r").result()).toEqual(["approved by ann", "done"]);
  });
});
