// The smallest cases of what the random tests have found.
import { beforeEach, describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import type { Context } from "../../src/core/context.ts";
import type { EntryType, Parked, StoredEntry } from "../../src/core/journal.ts";
import { withoutColdStart } from "../cold-start.ts";
import type { Node, World } from "./program.ts";
import { rechain, resume, runProgram, type Story } from "./rig.ts";

const NOTHING: Node = { op: "seq", of: [] };

describe("P9: what a body says after a foreign await is recorded once, wherever the journal was cut", () => {
  it.each([
    ["cost", (ctx: Context) => ctx.cost({ usd: 1 })],
    ["note", (ctx: Context) => ctx.note("here")],
    ["state.patched", (ctx: Context) => ctx.set("k", 1)],
    ["patched", (ctx: Context) => void ctx.patched("p")],
  ])("%s", async (type, say) => {
    const handler = async (ctx: Context, world: World) => {
      await world.foreign("setImmediate");
      say(ctx);
      await ctx.step("a", () => 1);
    };
    const story = await runProgram(NOTHING, { seed: 1, handler });
    for (let length = 1; length < story.journal.length; length++) {
      const resumed = await resume(story, story.journal.slice(0, length), 1, { handler });
      expect([length, resumed.entries.filter((entry) => entry.type === type).length]).toEqual([length, 1]);
    }
  });
});

describe("P9: newer code that asks for a patch goes the way that older code has said something on, wherever the journal was cut", () => {
  const make = (say: (ctx: Context, isPatched: boolean) => unknown) => (isNew: boolean) => async (ctx: Context) => {
    await say(ctx, isNew && ctx.patched("p"));
    await ctx.step("a", () => 1);
    return ctx.get("k");
  };

  it.each([
    ["another value", make((ctx, isPatched) => ctx.set("k", isPatched ? "new" : "old"))],
    ["another key", make((ctx, isPatched) => (isPatched ? ctx.set("other", 1) : ctx.set("k", 1)))],
    [
      "a step before it",
      make(async (ctx, isPatched) => {
        if (isPatched) await ctx.step("check", () => 1);
        ctx.set("k", 1);
      }),
    ],
  ])("%s", async (_, handlerOf) => {
    const old = await runProgram(NOTHING, { seed: 1, handler: handlerOf(false) });
    for (let length = 1; length < old.journal.length; length++) {
      const resumed = await resume(old, old.journal.slice(0, length), 1, { handler: handlerOf(true) });
      expect(resumed.entries.filter(({ type }) => type === "state.patched")).toHaveLength(1);
      expect(resumed.entries.at(-1)).toMatchObject({ type: "run.succeeded", payload: resumed.state["k"] });
    }
  });
});

describe("B63, P3: a recorded outcome that nothing waits for is no history", () => {
  beforeEach(() => withoutColdStart("its journals are altered on purpose"));

  let bodies = 0;
  const handler = async (ctx: Context, world: World) => {
    bodies++;
    return ctx.step("a", world.work(1, "async", "ok"));
  };
  const alter = async (change: (journal: readonly StoredEntry[]) => StoredEntry[]) => {
    const story = await runProgram(NOTHING, { seed: 1, handler });
    const kept = rechain(story.row.id, change(story.journal.slice(0, -1)));
    return resume(story, kept, 1, { handler, leaseClock: manualClock() });
  };

  it("an outcome of a call that was never made parks the run; the step does not run again", async () => {
    const resumed = await alter(([start, call, outcome]) => [start!, call!, { ...outcome!, key: "unheard-of" }]);
    expect(parkOf(resumed)?.reason).toBe("replay_drift");
    expect(resumed.starts.size).toBe(0);
  });

  it("a second outcome of the same call parks the run", async () => {
    const resumed = await alter(([start, call, outcome]) => [start!, call!, outcome!, outcome!]);
    expect(parkOf(resumed)?.reason).toBe("replay_drift");
  });

  it("a second start parks the run as corrupted; the body does not start at all", async () => {
    bodies = 0;
    const resumed = await alter(([start, call, outcome]) => [start!, start!, call!, outcome!]);
    expect(parkOf(resumed)).toMatchObject({
      reason: "corrupted_journal",
      message: expect.stringContaining("entry 1 "),
    });
    // One in the run that was altered, none in the one that goes on from it.
    expect(bodies).toBe(1);
  });

  it("a payload that its type cannot have parks the run as corrupted, without hurting the worker", async () => {
    const resumed = await alter(([start, call, outcome]) => [start!, call!, { ...outcome!, type: "step.failed" }]);
    expect(parkOf(resumed)?.reason).toBe("corrupted_journal");
  });

  it("a failure without a payload parks the run as corrupted, without hurting the worker", async () => {
    const resumed = await alter(([start, call, outcome]) => [
      start!,
      call!,
      { ...outcome!, type: "step.failed", data: null },
    ]);
    expect(parkOf(resumed)?.reason).toBe("corrupted_journal");
  });
});

describe("I23: what a later version has recorded is left alone", () => {
  const handler = async (ctx: Context, world: World) => {
    const a = await ctx.step("a", world.work(1, "async", "ok"));
    return [a, await ctx.step("b", world.work(2, "async", "ok"))];
  };

  // The older version must not even park the run: it would write to it, and a person would have to decide about nothing.
  it.each([
    ["with a key of its own", { key: "k", data: '{"anything":1}' }],
    ["with the key of a step", { key: "a", data: '{"attempt":7,"retryAt":9}' }],
    ["without key and payload", { key: null, data: null }],
  ])("I23 P1 entries of an unknown type are passed over, %s", async (_, unknown) => {
    const story = await runProgram(NOTHING, { seed: 1, handler });
    const later = (at: number) => ({ ...unknown, at, seq: 0, hash: "", type: "later.recorded" as EntryType });
    for (let length = 2; length < story.journal.length; length++) {
      const mixed = story.journal.slice(1, length).flatMap((entry) => [later(entry.at), entry, later(entry.at)]);
      const kept = rechain(story.row.id, [story.journal[0]!, ...mixed]);
      const resumed = await resume(story, kept, 1, { handler });
      expect(parkOf(resumed)).toBeUndefined();
      expect(resumed.entries.at(-1)).toMatchObject({ type: "run.succeeded", payload: story.entries.at(-1)?.payload });
      expect(resumed.journal.slice(0, kept.length)).toEqual(kept);
    }
  });
});

function parkOf(story: Story): Parked | undefined {
  const last = story.entries.at(-1);
  return last?.type === "run.parked" ? (last.payload as Parked) : undefined;
}
