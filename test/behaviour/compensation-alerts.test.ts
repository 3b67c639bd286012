import { describe, expect, it } from "vitest";
import { why } from "../../src/client/why.ts";
import type { Notification, Notifier } from "../../src/core/notification.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { withoutColdStart } from "../cold-start.ts";
import { errorOf, HOUR, openWorld, STORES } from "./harness.ts";

const OWNER = "payments@shop.example";

function fake(): Notifier & { readonly got: Notification[] } {
  const got: Notification[] = [];
  return { name: "fake", got, notify: (one) => void got.push(one) };
}

/** Does two things, of which the bank takes one back. */
function stubborn(owner?: string) {
  const options = { name: "order", retry: { max: 1, jitter: false }, ...(owner !== undefined && { owner }) };
  return workflow(options, async (ctx) => {
    const undo = () => {
      throw new Error("bank is closed");
    };
    await ctx.step("draft", () => "d-1", { undo: () => {} });
    await ctx.step("charge", () => "c-1", { undo });
    throw new Error("out of stock");
  });
}

const LEFT = [{ effect: "charge", error: expect.stringContaining("bank is closed") }];

describe.each(STORES)("what could not be undone, on %s", (store) => {
  it("C-15 E-15 the owner of the workflow is told once what is left, and the error and `why` name them", async () => {
    const world = await openWorld(store);
    const notifier = fake();
    const flow = stubborn(OWNER);
    const pawl = await world.open([flow], { notifiers: [notifier] });
    await pawl.start(flow, undefined, { id: "r" });
    await world.advance(HOUR);
    const error = await errorOf(pawl.get("r").result());
    expect(error).toMatchObject({ code: "compensation_incomplete", fields: { owner: OWNER, remaining: LEFT } });
    expect(error.message).toContain(OWNER);
    expect(notifier.got).toMatchObject([
      { event: "compensation_incomplete", run: "r", workflow: "order", owner: OWNER, to: [OWNER], remaining: LEFT },
    ]);
    expect(notifier.got[0]?.summary).toContain('"charge"');
    expect((await why(pawl, "r")).present).toContain(`Its owner, ${OWNER}, has to see to what is left.`);
    expect((await pawl.list({ workflow: "pawl.notify" })).runs).toMatchObject([{ state: "succeeded", parent: "r" }]);
  });

  it("C-15 without an owner the event is sent as well, for nobody by name", async () => {
    const world = await openWorld(store);
    const notifier = fake();
    const flow = stubborn();
    const pawl = await world.open([flow], { notifiers: [notifier] });
    await pawl.start(flow, undefined, { id: "r" });
    await world.advance(HOUR);
    expect(await errorOf(pawl.get("r").result())).toMatchObject({ fields: { owner: null } });
    expect(notifier.got).toMatchObject([{ event: "compensation_incomplete", owner: null, to: [], remaining: LEFT }]);
  });

  it("C-15 P19 a cancel that overtakes the end does not send it twice", async () => {
    const world = await openWorld(store);
    const notifier = fake();
    const flow = stubborn(OWNER);
    const inner = world.store.commit.bind(world.store);
    let cancels = 0;
    const commit: Store["commit"] = async (batch) => {
      const isEnd = batch.runs.some(({ entries }) => entries.some(({ type }) => type === "run.failed"));
      if (isEnd && cancels++ === 0)
        await world.store.deliver({ to: "r", id: "cancel", kind: "cancel", name: "", data: "" });
      return inner(batch);
    };
    Object.assign(world.store, { commit });
    const pawl = await world.open([flow], { notifiers: [notifier] });
    await pawl.start(flow, undefined, { id: "r" });
    await world.advance(HOUR);
    expect(cancels).toBeGreaterThan(0);
    expect(await pawl.get("r").status()).toMatchObject({ state: "failed", stopReason: "compensation_incomplete" });
    expect(notifier.got).toHaveLength(1);
  });

  it("C-15 S4-34 a kill right after the end loses nothing: the next process sends it", async () => {
    const world = await openWorld(store);
    const flow = stubborn(OWNER);
    const hanging: Notifier = { name: "fake", notify: () => new Promise(() => {}) };
    const first = await world.open([flow], { notifiers: [hanging] });
    await first.start(flow, undefined, { id: "r" });
    await world.advance(HOUR / 60);
    const notifier = fake();
    await world.restart([flow], { notifiers: [notifier] });
    await world.settle();
    expect(notifier.got).toMatchObject([{ run: "r", owner: OWNER, remaining: LEFT }]);
  });

  it("C-15 P19 a run whose code has gone, and is cancelled with compensate, tells of what nobody undid", async () => {
    withoutColdStart("its code leaves the journal on purpose");
    const world = await openWorld(store);
    const notifier = fake();
    const flowOf = (name: string) =>
      workflow({ name: "order", owner: OWNER }, async (ctx) => {
        await ctx.step(name, () => 1, { undo: () => {} });
        await ctx.waitFor("never");
      });
    const first = await world.open([flowOf("a")]);
    await first.start(flowOf("a"), undefined, { id: "r" });
    await world.settle();
    const second = await world.restart([flowOf("b")], { notifiers: [notifier] });
    await world.settle();
    await second.cancel("r", { compensate: true });
    await world.settle();
    expect(await errorOf(second.get("r").result())).toMatchObject({ fields: { owner: OWNER } });
    expect(notifier.got).toMatchObject([
      { event: "compensation_incomplete", run: "r", owner: OWNER, remaining: [{ effect: "a" }] },
    ]);
  });
});

describe("the option `owner`", () => {
  it.each([
    ["", ""],
    ["a line break", "a\nb"],
    ["a number", 7],
  ])("C-15 %s is refused", (_, owner) => {
    const make = () => workflow({ name: "order", owner: owner as string }, async () => {});
    expect(make).toThrow(expect.objectContaining({ code: "invalid_argument", fields: { field: "owner" } }));
  });
});
