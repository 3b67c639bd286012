// An effect of which nobody can tell whether it happened, while a person is asked.
import { describe, expect, it } from "vitest";
import { RetryableError } from "../../src/base/errors.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import { timeline } from "../../src/client/timeline.ts";
import { workflow } from "../../src/core/workflow.ts";
import { errorOf, openWorld, STORES } from "./harness.ts";

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
});
