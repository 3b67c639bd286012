import { describe, expect, it } from "vitest";
import { RetryableError } from "../../src/base/errors.ts";
import type { Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { openOn, rounds } from "../attacks/rig.ts";
import { DAY, gate, openWorld, STORES } from "./harness.ts";

describe.each(STORES)("the end of a run on %s", (store) => {
  it("P12 names steps in a warning that had not begun when the run ended, or waited for their next attempt", async () => {
    const world = await openWorld(store);
    const started: string[] = [];
    const hasty = workflow("hasty", async (ctx) => {
      void ctx.step("retrying", () => {
        started.push("retrying");
        throw new RetryableError("busy", { retryAfter: "1 h" });
      });
      await ctx.sleep("1 s");
      void ctx.step("late", () => started.push("late"));
      return "done";
    });
    const run = await (await world.open([hasty])).start(hasty);
    await world.advance(1000);
    expect(await run.result()).toBe("done");
    await world.advance(DAY);
    expect(started).toEqual(["retrying"]);
    const warnings = world.lines.filter(({ level }) => level === "warn").map(({ message }) => message);
    expect(warnings).toEqual([expect.stringContaining("retrying, late")]);
    expect(warnings[0]).toContain(run.id);
    expect((await world.journal(run)).at(-1)).toBe("run.succeeded");
  });

  it("P12 records nothing behind the end, not even that a step will be tried again", async () => {
    const world = await openWorld(store);
    const busy = gate();
    const racing = workflow("racing", async (ctx) =>
      Promise.race([ctx.step("fast", () => "fast"), ctx.step("busy", () => busy.passed)]),
    );
    // The step fails while the commit that holds the end is under way.
    const commit: Store["commit"] = async (batch) => {
      if (batch.runs.some((part) => part.entries.some(({ type }) => type === "run.succeeded"))) {
        busy.fail(new RetryableError("busy"));
        await rounds(20);
      }
      return world.store.commit(batch);
    };
    const pawl = await openOn(world.store, { commit }, [racing]);
    const run = await pawl.start(racing);
    expect(await run.result()).toBe("fast");
    await world.advance(DAY);
    expect((await world.journal(run)).slice(-2)).toEqual(["step.completed fast", "run.succeeded"]);
  });
});
