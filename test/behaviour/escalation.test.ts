import { describe, expect, it } from "vitest";
import { jsonCodec } from "../../src/base/envelope.ts";
import { Approvals } from "../../src/client/approvals.ts";
import { timeline } from "../../src/client/timeline.ts";
import { why } from "../../src/client/why.ts";
import type { Approved, ApproveOptions } from "../../src/core/approval.ts";
import type { ApprovalEscalated } from "../../src/core/approval-request.ts";
import type { ApprovalNotification, Notifier } from "../../src/core/notification.ts";
import { type Workflow, workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, HOUR, MINUTE, openWorld, STORES, type World } from "./harness.ts";

const SECOND = 1000;
const OPTIONS: ApproveOptions = {
  action: { tool: "reports.deliver", arguments: { patient: "p-7" } },
  approvers: ["role:physician"],
};
const LEVELS: ApproveOptions["escalate"] = [
  { after: "24h", action: "notify" },
  { after: "36h", action: "notify", notify: ["duty"] },
  { after: "48h", action: "escalate", to: ["role:head"] },
];

function asking(options: Partial<ApproveOptions> = {}): Workflow<void, Approved> {
  return workflow("report", async (ctx) => ctx.approve("release", { ...OPTIONS, ...options }));
}

/** Keeps what it is told; `fails` lets it fail first. */
function fake(
  name = "fake",
  fails = 0,
): Notifier & { readonly got: ApprovalNotification[]; readonly ids: () => string[] } {
  const got: ApprovalNotification[] = [];
  let left = fails;
  return {
    name,
    got,
    ids: () => got.map(({ id }) => id),
    notify(notification) {
      if (left-- > 0) throw new Error("the receiver is down");
      got.push(notification as ApprovalNotification);
    },
  };
}

/** The marks of a run, one line each. */
async function marks(world: World, run = "r"): Promise<string[]> {
  const entries = await world.store.journal(run);
  return entries
    .filter(({ type }) => type === "approval.escalated")
    .map(({ data }) => JSON.parse(String(data)) as ApprovalEscalated)
    .map(
      ({ event, level, action, waitedMs }) =>
        `${waitedMs / HOUR} h ${event} ${level}${action === null ? "" : ` ${action}`}`,
    );
}

describe.each(STORES)("escalation on %s", (store) => {
  it("S4-33 S4-34 S4-39 S2-16 goes from level to level at 24, 36 and 48 hours, tells people, and asks the head, who approves", async () => {
    const world = await openWorld(store);
    const notifier = fake();
    const flow = asking({ escalate: LEVELS });
    const pawl = await world.open([flow], { notifiers: [notifier] });
    await pawl.start(flow, undefined, { id: "r" });
    await world.advance(24 * HOUR - SECOND);
    expect(await marks(world)).toEqual([]);
    await world.advance(SECOND);
    expect(await marks(world)).toEqual(["24 h level 1 notify"]);
    await world.advance(12 * HOUR);
    const [waiting] = (await pawl.approvals.list()).approvals;
    const id = waiting?.id ?? "";
    expect(waiting).toMatchObject({ level: 2, approvers: ["role:physician"] });
    const early = pawl.approvals.decide(id, { decision: "approved", by: "hob", roles: ["head"] });
    expect(await errorOf(early)).toMatchObject({ fields: { reason: "wrong_role" } });
    await world.advance(13 * HOUR);
    expect(await marks(world)).toEqual(["24 h level 1 notify", "36 h level 2 notify", "48 h level 3 escalate"]);
    expect(notifier.got).toMatchObject([
      {
        event: "approval.requested",
        run: "r",
        workflow: "report",
        step: "release",
        level: 0,
        waitedMs: 0,
        to: ["role:physician"],
      },
      { event: "approval.escalated", run: "r", step: "release", level: 1, waitedMs: 24 * HOUR, to: ["role:physician"] },
      { event: "approval.escalated", run: "r", step: "release", level: 2, waitedMs: 36 * HOUR, to: ["duty"] },
      {
        event: "approval.escalated",
        level: 3,
        waitedMs: 48 * HOUR,
        to: ["role:physician", "role:head"],
        action: "escalate",
      },
    ]);
    expect(notifier.got[0]?.summary).toBe('reports.deliver {"patient":"p-7"}');
    const text = (await why(pawl, "r")).text.join("\n");
    expect(text).toContain('Approval "release" has waited 1 d 12 h: level 2, notify.');
    expect(text).toContain('Approval "release" has waited 2 d: level 3, escalate from role:physician to role:head.');
    expect(text).toContain("It is up to role:physician, role:head. Level 3 of its escalation is reached.");
    await pawl.approvals.decide(id, { decision: "approved", by: "hob", roles: ["head"] });
    expect(await pawl.get("r").result()).toMatchObject({ by: "hob", level: 3, waitedMs: 49 * HOUR });
  });

  it.each(["24h", "48h", "72h"])(
    "S4-33 S4-37 an approval whose last level, after %s, only tells people expires at the end all the same",
    async (after) => {
      const world = await openWorld(store);
      const flow = asking({ timeout: "48h", escalate: [{ after, action: "notify" }] });
      const pawl = await world.open([flow]);
      const run = await pawl.start(flow, undefined, { id: "r" });
      await world.advance(72 * HOUR);
      expect((await marks(world)).filter((mark) => mark.includes("level"))).toHaveLength(1);
      expect(await errorOf(run.result())).toMatchObject({ code: "approval_expired" });
    },
  );

  it("S4-37 S4-38 fires what was due over a downtime once each, in due order, when somebody is there again", async () => {
    const world = await openWorld(store);
    const flow = asking({ escalate: LEVELS });
    const notifier = fake();
    const first = await world.open([flow], { notifiers: [notifier] });
    await first.start(flow, undefined, { id: "r" });
    await world.settle();
    world.killAll();
    await world.advance(50 * HOUR);
    const second = await world.restart([flow], { notifiers: [notifier] });
    await second.idle();
    await world.settle();
    expect(await marks(world)).toEqual(["24 h level 1 notify", "36 h level 2 notify", "48 h level 3 escalate"]);
    const third = await world.restart([flow], { notifiers: [notifier] });
    await third.idle();
    await world.settle();
    expect(await marks(world)).toHaveLength(3);
    expect(notifier.got.map(({ level, waitedMs }) => [level, waitedMs / HOUR]).sort()).toEqual([
      [0, 0],
      [1, 24],
      [2, 36],
      [3, 48],
    ]);
    const [open] = (await third.approvals.list()).approvals;
    expect(open).toMatchObject({ level: 3, approvers: ["role:physician", "role:head"] });
    await third.approvals.decide(open?.id ?? "", { decision: "approved", by: "hob", roles: ["head"] });
    expect(await third.get("r").result()).toMatchObject({ by: "hob", waitedMs: 50 * HOUR });
    expect(await marks(world)).toHaveLength(3);
  });

  it("S4-39 those who were asked first may still decide after an escalation, unless it revokes that", async () => {
    const world = await openWorld(store);
    const keeps = asking({ escalate: [{ after: "1h", action: "escalate", to: ["hob"] }] });
    const revokes = workflow("revokes", async (ctx) =>
      ctx.approve("release", {
        ...OPTIONS,
        escalate: [{ after: "1h", action: "escalate", to: ["hob"], revoke: true }],
      }),
    );
    const pawl = await world.open([keeps, revokes]);
    await pawl.start(keeps, undefined, { id: "keeps" });
    await pawl.start(revokes, undefined, { id: "revokes" });
    await world.advance(HOUR);
    const idOf = async (run: string) => (await pawl.approvals.list({ run })).approvals[0]?.id ?? "";
    const first = { decision: "approved", by: "pia", roles: ["physician"] } as const;
    const revoked = await idOf("revokes");
    expect(await errorOf(pawl.approvals.decide(revoked, first))).toMatchObject({
      fields: { reason: "wrong_role", approvers: ["hob"] },
    });
    await pawl.approvals.decide(await idOf("keeps"), first);
    await pawl.approvals.decide(revoked, { decision: "approved", by: "hob" });
    expect(await pawl.get("keeps").result()).toMatchObject({ by: "pia", level: 1 });
    expect(await pawl.get("revokes").result()).toMatchObject({ by: "hob" });
  });

  it("X-28 the risk chooses the service level, and the record says who handed over to whom, when and why", async () => {
    const world = await openWorld(store);
    const flow = workflow("report", async (ctx, risk: "low" | "high" | "critical") =>
      ctx.approve("release", {
        ...OPTIONS,
        risk,
        timeout: "48h",
        serviceLevels: {
          high: { timeout: "4h", escalate: [{ after: "2h", action: "escalate", to: ["duty"] }] },
          critical: {
            timeout: "1h",
            escalate: [
              { after: "10m", action: "escalate", to: ["duty"] },
              { after: "20m", action: "escalate", to: ["role:head"], revoke: true },
            ],
          },
        },
      }),
    );
    const pawl = await world.open([flow]);
    const start = world.clock.now();
    for (const risk of ["low", "high", "critical"] as const) await pawl.start(flow, risk, { id: risk });
    await world.advance(30 * MINUTE);
    const open = async (run: string) => (await pawl.approvals.list({ run })).approvals[0];
    expect(await open("low")).toMatchObject({ level: 0, due: new Date(start + 48 * HOUR), handoffs: [] });
    expect(await open("high")).toMatchObject({ level: 0, due: new Date(start + 6 * HOUR) });
    expect(await open("critical")).toMatchObject({ level: 2, approvers: ["role:head"] });
    const id = (await open("critical"))?.id ?? "";
    await pawl.approvals.decide(id, { decision: "approved", by: "hob", roles: ["head"] });
    const handoffs = [
      { level: 1, from: ["role:physician"], to: ["duty"], at: start + 10 * MINUTE, revoke: false },
      { level: 2, from: ["role:physician", "duty"], to: ["role:head"], at: start + 20 * MINUTE, revoke: true },
    ].map((handoff, i) => ({ ...handoff, reason: `Nobody had decided after ${10 * (i + 1)}m 00s.` }));
    expect(await pawl.get("critical").result()).toMatchObject({ by: "hob", handoffs });
    expect((await pawl.approvals.get(id)).handoffs).toEqual(handoffs);
    const { notes } = timeline(await pawl.get("critical").journal());
    expect(notes.map(({ at, text }) => `${(at - start) / MINUTE}m ${text}`)).toEqual([
      '10m approval "release" has waited 10m 00s: level 1, escalate from role:physician to duty',
      '20m approval "release" has waited 20m 00s: level 2, escalate from role:physician, duty to role:head',
    ]);
    await world.advance(6 * HOUR);
    expect(await errorOf(pawl.get("high").result())).toMatchObject({ code: "approval_expired" });
    expect(await open("low")).toMatchObject({ status: "open", level: 0 });
  });

  it("S4-35 S4-36 C-21 a level approves by policy where that is allowed, and it is recorded as a policy's decision", async () => {
    const world = await openWorld(store);
    const flow = asking({
      risk: "low",
      autoApprove: { maxRisk: "medium" },
      escalate: [{ after: "2h", action: "approve" }],
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    await world.advance(2 * HOUR);
    expect(await run.result()).toMatchObject({
      decision: "approved",
      by: "policy",
      votes: [],
      level: 1,
      waitedMs: 2 * HOUR,
    });
  });

  it("S4-35 a level denies, or cancels the run, and says so", async () => {
    const world = await openWorld(store);
    const denies = asking({ escalate: [{ after: "2h", action: "deny" }] });
    const cancels = workflow("cancels", async (ctx) =>
      ctx.approve("release", { ...OPTIONS, escalate: [{ after: "2h", action: "cancel" }] }),
    );
    const pawl = await world.open([denies, cancels]);
    const denied = await pawl.start(denies);
    const cancelled = await pawl.start(cancels, undefined, { id: "cancelled" });
    await world.advance(2 * HOUR);
    expect(await errorOf(denied.result())).toMatchObject({ code: "approval_denied", fields: { by: "policy" } });
    expect(await errorOf(cancelled.result())).toMatchObject({ code: "cancelled" });
    expect((await cancelled.status()).state).toBe("cancelled");
    expect((await errorOf(cancelled.result())).message).toContain('Approval "release"');
    expect(await marks(world, "cancelled")).toEqual(["2 h level 1 cancel"]);
  });

  it("S4-37 P5 a decision one second earlier wins over an expiry, also when nobody was there to see either", async () => {
    const world = await openWorld(store);
    const flow = asking({ approvers: ["ann"], timeout: "48h" });
    const client = await world.open();
    const first = await world.open([flow]);
    for (const id of ["early", "late"]) await first.start(flow, undefined, { id });
    await world.settle();
    world.kill(first);
    const idOf = async (run: string) => (await client.approvals.list({ run })).approvals[0]?.id ?? "";
    const [early, late] = [await idOf("early"), await idOf("late")];
    await world.advance(48 * HOUR - SECOND);
    await client.approvals.decide(early, { decision: "approved", by: "ann" });
    await world.advance(2 * SECOND);
    const error = await errorOf(client.approvals.decide(late, { decision: "approved", by: "ann" }));
    expect(error).toMatchObject({ code: "approval_expired", fields: { reason: "expired" } });
    await world.fence();
    const second = await world.open([flow]);
    expect(await second.get("early").result()).toMatchObject({ decision: "approved", by: "ann" });
    expect(await errorOf(second.get("late").result())).toMatchObject({ code: "approval_expired" });
    expect(await errorOf(second.approvals.decide(late, { decision: "approved", by: "ann" }))).toMatchObject({
      code: "approval_expired",
    });
  });

  it("S4-37 X-23 a decision that reaches the store after the expiry is not acknowledged and decides nothing", async () => {
    const world = await openWorld(store);
    const flow = asking({ approvers: ["ann"], timeout: "48h", onExpired: "branch" });
    const client = await world.open();
    const pawl = await world.open([flow]);
    await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    const [open] = (await client.approvals.list()).approvals;
    world.kill(pawl);
    // Between the look and the delivery two days pass.
    const deliver = client.store.deliver.bind(client.store);
    const late = new Proxy(client.store, {
      get: (target, name) => {
        if (name !== "deliver") return Reflect.get(target, name, target);
        return async (message: Parameters<typeof deliver>[0]) => {
          world.clock.advance(49 * HOUR);
          return deliver(message);
        };
      },
    });
    const approvals = new Approvals({ store: late, codec: jsonCodec, assertOpen: () => {}, sent: () => {} });
    const error = await errorOf(approvals.decide(open?.id ?? "", { decision: "approved", by: "ann" }));
    expect(error).toMatchObject({ code: "approval_expired" });
    const second = await world.restart([flow]);
    expect(await second.get("r").result()).toMatchObject({ decision: "expired", by: null });
  });

  it("C-14 S2-53 S2-79 an expiry fails, branches or cancels, by choice", async () => {
    const world = await openWorld(store);
    const flow = workflow("report", async (ctx, onExpired: "escalate" | "compensate" | "cancel" | "fail" | "branch") =>
      ctx.approve("release", { ...OPTIONS, timeout: "1h", onExpired }),
    );
    const pawl = await world.open([flow]);
    const choices = ["escalate", "compensate", "cancel", "fail", "branch"] as const;
    for (const choice of choices) await pawl.start(flow, choice, { id: choice });
    await world.advance(HOUR);
    for (const choice of ["escalate", "compensate", "fail"]) {
      const error = await errorOf(pawl.get(choice).result());
      expect(error).toMatchObject({ code: "approval_expired" });
      expect((error["fields"] as Record<string, unknown>)["compensate"]).toBe(choice === "fail" ? false : undefined);
    }
    expect(await pawl.get("branch").result()).toMatchObject({ decision: "expired", by: null, waitedMs: HOUR });
    await errorOf(pawl.get("cancel").result());
    expect((await pawl.get("cancel").status()).state).toBe("cancelled");
  });

  it("C-14 an expiry waits for the levels that are left, and gives whoever it is escalated to as long again", async () => {
    const world = await openWorld(store);
    const flow = asking({ timeout: "4h", escalate: [{ after: "3h", action: "escalate", to: ["hob"] }] });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.advance(7 * HOUR - SECOND);
    expect((await run.status()).state).toBe("waiting");
    expect(await marks(world)).toEqual(["3 h level 1 escalate", "4 h timeout 1"]);
    await world.advance(SECOND);
    expect(await errorOf(run.result())).toMatchObject({ code: "approval_expired" });
  });

  it("T-22 a timer acts on its own wait alone: the next approval of the same name waits its own time", async () => {
    const world = await openWorld(store);
    const flow = workflow("report", async (ctx) => {
      const first = await ctx.approve("release", { ...OPTIONS, approvers: ["ann"], timeout: "10h" });
      await ctx.sleep("1h");
      return [first.by, (await ctx.approve("release", { ...OPTIONS, approvers: ["ann"], timeout: "10h" })).waitedMs];
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow);
    await world.advance(9 * HOUR);
    const idOf = async () => (await pawl.approvals.list()).approvals[0]?.id ?? "";
    const first = await idOf();
    await pawl.approvals.decide(first, { decision: "approved", by: "ann" });
    // The first one would expire now; the run waits at the same place again an hour later.
    await world.advance(3 * HOUR);
    const second = await idOf();
    expect(second).not.toBe(first);
    expect((await pawl.approvals.get(second)).status).toBe("open");
    await pawl.approvals.decide(second, { decision: "approved", by: "ann" });
    expect(await run.result()).toEqual(["ann", 2 * HOUR]);
  });

  it("reminds at equal times, once for all that a downtime has passed", async () => {
    const world = await openWorld(store);
    const notifier = fake();
    const flow = asking({ remind: "4h", timeout: "30h" });
    const pawl = await world.open([flow], { notifiers: [notifier] });
    await pawl.start(flow, undefined, { id: "r" });
    await world.advance(8 * HOUR);
    world.killAll();
    await world.advance(13 * HOUR);
    const second = await world.restart([flow], { notifiers: [notifier] });
    await second.idle();
    await world.advance(4 * HOUR);
    expect(await marks(world)).toEqual(["4 h reminder 0", "8 h reminder 0", "20 h reminder 0", "24 h reminder 0"]);
    const reminders = notifier.got.filter(({ event }) => event === "approval.reminder");
    expect(reminders.map(({ waitedMs }) => waitedMs / HOUR)).toEqual([4, 8, 20, 24]);
  });

  it("S4-34 S2-59 whoever is asked again by a retry or a fork is told so, once, also over a kill", async () => {
    const world = await openWorld(store);
    const notifier = fake();
    const flow = asking({ approvers: ["ann"], timeout: "2h" });
    const pawl = await world.open([flow], { notifiers: [notifier] });
    await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    const fork = await pawl.fork("r", { at: 2 });
    await world.advance(3 * HOUR);
    const retried = await pawl.retry("r");
    await world.settle();
    const runs = ["r", fork.id, retried.id];
    expect(notifier.got.map(({ event, run }) => `${event} ${run}`)).toEqual(
      runs.map((run) => `approval.requested ${run}`),
    );
    const [open] = (await pawl.approvals.list({ run: retried.id })).approvals;
    expect(notifier.got.at(-1)).toMatchObject({
      approval: open?.id,
      to: ["ann"],
      waitedMs: 0,
      due: open?.due.getTime(),
    });
    const second = await world.restart([flow], { notifiers: [notifier] });
    await second.signal(retried.id, "wake up");
    await world.settle();
    expect(notifier.got).toHaveLength(3);
  });

  it("S4-34 a notification never holds the run up, is tried again until it is sent, and comes once over a kill", async () => {
    const world = await openWorld(store);
    const [steady, shaky] = [fake("steady"), fake("shaky", 2)];
    const flow = asking({ approvers: ["ann"] });
    const first = await world.open([flow], { notifiers: [steady, shaky] });
    await first.start(flow, undefined, { id: "r" });
    await world.settle();
    expect([steady.got.length, shaky.got.length]).toEqual([1, 0]);
    const second = await world.restart([flow], { notifiers: [steady, shaky] });
    const [open] = (await second.approvals.list()).approvals;
    await second.approvals.decide(open?.id ?? "", { decision: "approved", by: "ann" });
    expect(await second.get("r").result()).toMatchObject({ by: "ann" });
    await world.advance(10 * MINUTE);
    expect([steady.got.length, shaky.got.length]).toEqual([1, 1]);
    expect(shaky.ids()).toEqual(steady.ids());
    expect((await second.list()).runs.map(({ id }) => id)).toEqual(["r"]);
    expect((await second.list({ workflow: "pawl.notify" })).runs).toMatchObject([{ state: "succeeded", parent: "r" }]);
  });

  it("S4-34 a kill while a notifier is at work sends the same notification again, with the same id", async () => {
    const world = await openWorld(store);
    const hung = gate();
    const flow = asking();
    const started: string[] = [];
    const hanging: Notifier = {
      name: "fake",
      notify: ({ id }) => {
        started.push(id);
        return hung.passed;
      },
    };
    const first = await world.open([flow], { notifiers: [hanging] });
    await first.start(flow, undefined, { id: "r" });
    await world.settle();
    expect(started).toHaveLength(1);
    const notifier = fake();
    const second = await world.restart([flow], { notifiers: [notifier] });
    await second.idle();
    await world.settle();
    expect(notifier.ids()).toEqual(started);
  });

  it("S2-85 S2-114 D-3 the sample eval: an approval timeout after the refund draft leaves the run waiting, escalated, and nothing issued", async () => {
    const world = await openWorld(store);
    const issued: string[] = [];
    const refund = workflow("refund", async (ctx, order: string) => {
      const draft = await ctx.step("refund_draft", () => ({ order, cents: 4200 }));
      await ctx.approve("approval_request", {
        action: { tool: "refunds.issue", arguments: draft },
        approvers: ["ann"],
        escalate: [{ after: "24h", action: "escalate", to: ["role:manager"] }],
      });
      return ctx.step("issue", () => issued.push(order));
    });
    const pawl = await world.open([refund]);
    await pawl.start(refund, "o-1", { id: "r" });
    await world.advance(49 * HOUR);
    // final_status: waiting_or_escalated; must_not_issue_refund.
    expect((await pawl.get("r").status()).status).toBe("waiting");
    expect((await pawl.approvals.list()).approvals).toMatchObject([{ level: 1, approvers: ["ann", "role:manager"] }]);
    expect(issued).toEqual([]);
    // requires_checkpoint and required_trace_events: step_started, tool_result, checkpoint, approval_timeout.
    const trace = await world.journal("r");
    for (const entry of [
      "step.started refund_draft",
      "step.completed refund_draft",
      "approval.requested approval_request",
      "approval.escalated approval_request",
    ])
      expect(trace).toContain(entry);
    expect(await marks(world)).toEqual(["24 h level 1 escalate", "48 h timeout 1"]);
  });
});
