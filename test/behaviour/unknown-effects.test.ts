// An effect of which nobody can tell whether it happened, while a person is asked.
import { describe, expect, it } from "vitest";
import { RetryableError } from "../../src/base/errors.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import { timeline } from "../../src/client/timeline.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, gate, MINUTE, openWorld, STORES } from "./harness.ts";

const SECOND = 1000;

/** Pays, unguarded, and hears nothing of it; then ships. */
function order(undone: unknown[], ship: () => unknown = () => "shipped") {
  return workflow({ name: "order", retry: false }, async (ctx) => {
    await ctx.step("reserve", () => "seat 7", { undo: (seat) => undone.push(seat) });
    await ctx.effect("pay", {
      do: () => {
        throw new RetryableError("the line went dead");
      },
      undo: (value) => undone.push(value),
    });
    return ctx.step("ship", ship);
  });
}

describe.each(STORES)("an effect of unknown outcome on %s", (store) => {
  it("C-3 X-27 what a person says that it returned is what its undo gets, also after a restart", async () => {
    const world = await openWorld(store);
    const undone: unknown[] = [];
    const flow = order(undone, () => {
      throw new Error("out of stock");
    });
    const first = await world.open([flow]);
    await first.start(flow, undefined, { id: "r" });
    await world.settle();
    const pawl = await world.restart([flow]);
    await pawl.resolve("r", { choice: "happened", value: { payment: "p-1" } });
    expect((await errorOf(pawl.get("r").result())).message).toBe("out of stock");
    expect(undone).toEqual([{ payment: "p-1" }, "seat 7"]);
  });

  it("C-3 E-26 it is shown as unknown, with its error, also after the run was loaded again", async () => {
    const world = await openWorld(store);
    const flow = order([]);
    const first = await world.open([flow]);
    await first.start(flow, undefined, { id: "r" });
    await world.settle();
    const shown = async (pawl: Pawl) => timeline(await pawl.get("r").journal()).steps.find(({ key }) => key === "pay");
    expect(await shown(first)).toMatchObject({ status: "unknown", error: { message: "the line went dead" } });
    // A decision that nobody can read makes the run be loaded and parked again.
    await world.store.deliver({ to: "r", id: "garbled", kind: "decision", name: "pay", data: "{" });
    const second = await world.restart([flow]);
    await world.settle();
    expect((await world.journal("r")).filter((entry) => entry === "run.parked").length).toBe(2);
    expect((await second.get("r").status()).parked?.message).toContain("the line went dead");
    expect(await shown(second)).toMatchObject({ status: "unknown", error: { message: "the line went dead" } });
    expect((await second.get("r").effects()).map(({ status, error }) => [status, error])).toContainEqual([
      "unknown",
      "the line went dead",
    ]);
  });

  it("C-3 I6 B23 one that was out of time and goes on all the same is looked for when it has ended, not before", async () => {
    const world = await openWorld(store);
    const charged: number[] = [];
    const flow = workflow("order", async (ctx) =>
      ctx.effect(
        "pay",
        {
          // It does not heed its signal, and takes longer than it may.
          do: async ({ attempt }) => {
            await new Promise<void>((resolve) => void world.clock.after(10 * SECOND, resolve));
            charged.push(attempt);
            return `attempt ${attempt}`;
          },
          detect: () => (charged.length > 0 ? { found: true, value: "found" } : { found: false }),
        },
        { timeout: "1s", retry: { max: 1 } },
      ),
    );
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.advance(MINUTE);
    expect([await run.result(), charged]).toEqual(["found", [1]]);
  });

  it("C-3 one that never ends is waited for as long as a stopped body, and tried again then", async () => {
    const world = await openWorld(store);
    const flow = workflow("order", async (ctx) =>
      ctx.effect(
        "pay",
        {
          do: ({ attempt }) => (attempt === 1 ? new Promise<string>(() => {}) : "paid"),
          detect: () => ({ found: false }),
        },
        { timeout: "1s", retry: { max: 1, jitter: false } },
      ),
    );
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.advance(30 * SECOND);
    expect((await run.status()).status).toBe("running");
    await world.advance(30 * SECOND);
    expect(await run.result()).toBe("paid");
  });

  it("C-3 E-26 S2-27 a request that its caller has aborted may have been heard: unguarded it is asked about, otherwise undone", async () => {
    const world = await openWorld(store);
    const undone: unknown[] = [];
    const flow = workflow("order", async (ctx, isGuarded: boolean) =>
      ctx.effect("pay", {
        idempotent: isGuarded,
        do: () => Promise.reject(new DOMException("This operation was aborted", "AbortError")),
        undo: (value) => undone.push(value),
      }),
    );
    const pawl = await world.open([flow]);
    const asking = await pawl.start(flow, false, { id: "asking" });
    await world.settle();
    expect((await asking.status()).parked).toMatchObject({ reason: "unknown_outcome" });
    expect(await asking.effects()).toMatchObject([{ status: "unknown" }]);
    expect(await errorOf(pawl.run(flow, true))).toMatchObject({ name: "AbortError" });
    expect(undone).toEqual([undefined]);
  });

  it("S2-39 the ledger does not call planned what was under way when its run ended, or went on as another generation", async () => {
    const world = await openWorld(store);
    const flow = workflow("order", async (ctx, round: number): Promise<void> => {
      void ctx.effect("pay", { idempotent: true, do: () => new Promise(() => {}) });
      void ctx.effect(
        "closed",
        {
          idempotent: true,
          do: () => Promise.reject(Object.assign(new Error("refused"), { code: "tried later" })),
        },
        { retry: { max: 5, base: "1h", jitter: false, on: "any" } },
      );
      await ctx.sleep("1m");
      if (round === 1) await ctx.continueAs(2);
      await ctx.waitFor("never");
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, 1, { id: "r" });
    const statuses = async () => (await run.effects()).map(({ effect, status }) => `${effect} ${status}`);
    await world.advance(2 * MINUTE);
    expect(await statuses()).toEqual(["pay unknown", "closed failed", "pay planned", "closed planned"]);
    await run.cancel();
    await world.settle();
    expect(await statuses()).toEqual(["pay unknown", "closed failed", "pay unknown", "closed failed"]);
  });

  it("C-3 CO1 nobody is asked about it once the body has failed: it is undone with the rest", async () => {
    const world = await openWorld(store);
    const undone: unknown[] = [];
    const line = gate<never>();
    const flow = workflow({ name: "order", retry: false, guard: "off" }, async (ctx) => {
      const pay = ctx.effect("pay", { do: () => line.passed, undo: (value) => undone.push(value) });
      const ship = ctx.step("ship", () => {
        throw new Error("out of stock");
      });
      await Promise.all([pay, ship]).catch((error: unknown) => {
        // Once the body is over, and before the turn that says that it is undone.
        process.nextTick(() => line.fail(new RetryableError("the line went dead")));
        throw error;
      });
    });
    const pawl = await world.open([flow]);
    const run = await pawl.start(flow, undefined, { id: "r" });
    await world.settle();
    expect(await world.journal("r")).not.toContain("run.parked");
    expect((await errorOf(run.result())).message).toBe("out of stock");
    expect(undone).toEqual([undefined]);
  });
});
