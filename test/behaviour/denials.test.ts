import { describe, expect, it } from "vitest";
import type { Pawl } from "../../src/client/pawl.ts";
import { why } from "../../src/client/why.ts";
import type { ApproveOptions } from "../../src/core/approval.ts";
import type { ApprovalNotification } from "../../src/core/notification.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, openWorld, STORES, type World } from "./harness.ts";

interface Ask extends Pick<ApproveOptions, "maxDenials" | "onDenied"> {
  readonly tool: string;
  readonly given: unknown;
  readonly actor?: string;
}

/** A body that asks for one thing after the other, whatever people say. */
const stubborn = (undone: string[] = []) =>
  workflow("stubborn", async (ctx, asks: readonly Ask[]) => {
    await ctx.step("draft", () => "drafted", { undo: () => void undone.push("draft") });
    const heard: string[] = [];
    for (const { tool, given, ...options } of asks) {
      const action = { tool, arguments: given };
      const decided = ctx.approve("refund", {
        action,
        approvers: ["ann"],
        ...options,
        onDenied: options.onDenied ?? "branch",
      });
      heard.push((await decided).decision);
    }
    return heard;
  });

/** Says no to what is asked now; gives what the approver saw of it. */
async function deny(world: World, pawl: Pawl, by: "denied" | "approved" = "denied"): Promise<unknown> {
  await world.settle();
  const [asked] = (await pawl.approvals.list()).approvals;
  if (asked === undefined) throw new Error("it asks nothing");
  expect(await pawl.approvals.get(asked.id)).toMatchObject({ denials: asked.denials });
  await pawl.approvals.decide(asked.id, { decision: by, by: "ann" });
  await world.settle();
  return asked.denials;
}

const FIRST: Ask = { tool: "refunds.issue", given: { order: "o-1", cents: 4200 }, actor: "bot" };
/** The same one, written down in another order. */
const SAME: Ask = { tool: "refunds.issue", given: { cents: 4200, order: "o-1" }, actor: "bot" };

describe.each(STORES)("denials on %s", (store) => {
  it("X-23 those who are asked see how often the action and the tool were denied before in this run", async () => {
    const world = await openWorld(store);
    const told: ApprovalNotification[] = [];
    const flow = stubborn();
    const notifiers = [{ name: "test", notify: (one: ApprovalNotification) => void told.push(one) }];
    const pawl = await world.open([flow], { notifiers });
    const asks: Ask[] = [
      FIRST,
      SAME,
      { ...FIRST, given: { order: "o-2" } },
      { ...FIRST, actor: "ann's bot" },
      { ...FIRST, tool: "refunds.draft" },
      FIRST,
    ];
    await pawl.start(flow, asks, { id: "other" });
    await deny(world, pawl);
    await pawl.get("other").cancel();
    const run = await pawl.start(flow, asks, { id: "r" });
    expect(await deny(world, pawl)).toEqual({ action: 0, tool: 0 });
    expect(await deny(world, pawl)).toEqual({ action: 1, tool: 1 });
    expect(await deny(world, pawl)).toEqual({ action: 0, tool: 2 });
    expect(await deny(world, pawl, "approved")).toEqual({ action: 2, tool: 0 });
    expect(await deny(world, pawl, "approved")).toEqual({ action: 0, tool: 0 });
    const second = await world.restart([flow], { notifiers });
    await world.settle();
    expect((await why(second, "r")).present.join("\n")).toContain("This very action was denied before in this run: 2.");
    expect(await deny(world, second, "approved")).toEqual({ action: 2, tool: 3 });
    expect(await second.get("r").result()).toEqual(["denied", "denied", "denied", "approved", "approved", "approved"]);
    expect(told.filter(({ run: of }) => of === run.id).at(-1)).toMatchObject({ denials: { action: 2, tool: 3 } });
  });

  it("X-23 after three denials of the very same action nobody is asked again: a typed error, and what was done is undone", async () => {
    const world = await openWorld(store);
    const undone: string[] = [];
    const flow = stubborn(undone);
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, [FIRST, SAME, FIRST, SAME], { id: "r" });
    for (const count of [0, 1, 2]) expect(await deny(world, pawl)).toEqual({ action: count, tool: count });
    const error = await errorOf(run.result());
    expect(error).toMatchObject({
      code: "approval_refused",
      fields: { run: "r", name: "refund", tool: "refunds.issue", reason: "action", denials: { action: 3, tool: 3 } },
    });
    expect(error.message).toContain("has been denied 3 times in this run");
    expect((await world.journal(run)).filter((entry) => entry.startsWith("approval.requested"))).toHaveLength(3);
    expect(undone).toEqual(["draft"]);
  });

  it("X-23 `maxDenials` counts a tool and its actor whatever the arguments, over a restart, and may be without end", async () => {
    const world = await openWorld(store);
    const flow = stubborn();
    const first = await world.open([flow]);
    const once: Ask["maxDenials"] = { tool: 2 };
    const other = (n: number): Ask => ({ ...FIRST, given: { order: n }, maxDenials: once });
    await first.start(flow, [other(1), other(2), { ...other(3), actor: "eve" }, { ...other(4), onDenied: "fail" }], {
      id: "r",
    });
    await deny(world, first);
    const pawl = await world.restart([flow]);
    await deny(world, pawl);
    await deny(world, pawl, "approved");
    expect(await errorOf(pawl.get("r").result())).toMatchObject({
      code: "approval_refused",
      fields: { reason: "tool", actor: "bot", denials: { action: 0, tool: 2 }, compensate: false },
    });
    const ever: Ask = { ...FIRST, maxDenials: { action: Number.POSITIVE_INFINITY } };
    const run = await pawl.start(flow, [ever, ever, ever, ever, ever], { id: "s" });
    for (let n = 0; n < 5; n++) await deny(world, pawl);
    expect(await run.result()).toEqual(Array(5).fill("denied"));
  });

  it("X-23 P7 a deployment with a lower `maxDenials` follows what was asked before it, and asks nothing more", async () => {
    const world = await openWorld(store);
    const deployed = (action: number) =>
      workflow("stubborn", async (ctx) => {
        const options = { action: { tool: "refunds.issue", arguments: 1 }, approvers: ["ann"], maxDenials: { action } };
        for (;;) await ctx.approve("refund", { ...options, onDenied: "branch" });
      });
    const first = await world.open([deployed(5)]);
    await first.start(deployed(5), undefined, { id: "r" });
    for (const count of [0, 1, 2]) expect(await deny(world, first)).toEqual({ action: count, tool: count });
    const second = await world.restart([deployed(2)]);
    await world.settle();
    expect(await deny(world, second)).toEqual({ action: 3, tool: 3 });
    expect(await errorOf(second.get("r").result())).toMatchObject({
      code: "approval_refused",
      fields: { denials: { action: 4 } },
    });
  });

  it("X-23 P10 a retry of a run with a start key asks again, and what it asks can be decided", async () => {
    const world = await openWorld(store);
    const flow = stubborn();
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, [{ ...FIRST, onDenied: "fail" }], { id: "r", key: "order-1" });
    await deny(world, pawl);
    await errorOf(run.result());
    const again = await pawl.retry("r");
    expect(await deny(world, pawl, "approved")).toEqual({ action: 0, tool: 0 });
    expect(await again.result()).toEqual(["approved"]);
  });
});
