// A worker's alarm for a sleeping run is one column. Whatever loses it, the run is found and wakes in time.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import type { Commit, RunCommit } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { DAY, errorOf, HOUR, MINUTE, openWorld, STORES_AT_ONCE } from "../behaviour/harness.ts";
import { openOn } from "./rig.ts";

const sleeper = workflow("sleeper", async (ctx) => ctx.sleep("1h"));
const patient = workflow("patient", async (ctx) => ctx.waitFor("go", { timeout: "1h", default: "late" }));
const child = workflow("child", async (ctx) => ctx.waitFor("never"));
const both = workflow("both", async (ctx) => {
  const called = ctx.call(child);
  await ctx.sleep("1h");
  await Promise.race([called, ctx.sleep("1ms")]);
});
const mortal = workflow({ name: "mortal", deadline: "1h" }, async (ctx) => ctx.waitFor("never"));
const ALL = [sleeper, patient, both, mortal, child];
const SLEEPERS = ["sleeper", "patient", "both", "mortal"];

/** The first alarm of each of these runs gets lost on its way to the store. */
function losing(change: (wakeAt: number) => number | null): (commit: Commit) => Commit {
  const hit = new Set<string>();
  const spoil = (part: RunCommit): RunCommit => {
    if (typeof part.row?.wakeAt !== "number" || !SLEEPERS.includes(part.run) || hit.has(part.run)) return part;
    hit.add(part.run);
    return { ...part, row: { ...part.row, wakeAt: change(part.row.wakeAt) } };
  };
  return ({ worker, runs }) => ({ worker, runs: runs.map(spoil) });
}

describe.each(STORES_AT_ONCE)("a lost alarm on %s", (kind) => {
  it.each<[string, (wakeAt: number) => number | null]>([
    ["missing", () => null],
    ["late", (wakeAt) => wakeAt + DAY],
  ])("B8 I10 that is %s is named, told of and set again, whatever else the run waits for", async (_, change) => {
    const leaseClock = manualClock();
    const world = await openWorld(kind, { leaseClock });
    const errors: string[] = [];
    const logger = { debug() {}, info() {}, warn() {}, error: (message: string) => void errors.push(message) };
    const spoil = losing(change);
    const commit = (request: Commit) => world.store.commit(spoil(request));
    const pawl = await openOn(world.store, { commit }, ALL, { logger });
    for (const flow of [sleeper, patient, both, mortal]) await pawl.start(flow, undefined, { id: flow.name });
    await pawl.idle();
    const orphans = await world.store.orphans();
    expect(orphans.map(({ run }) => run)).toEqual(SLEEPERS);

    const client = await world.open();
    for (let ms = 0; ms < MINUTE; ms += 5000) {
      leaseClock.advance(5000);
      await world.settle();
      await pawl.idle();
    }
    expect(await world.store.orphans()).toEqual([]);
    expect(errors).toEqual([expect.stringMatching(/4 runs .*sleeper, patient, both, mortal/)]);

    await world.advance(HOUR - 1);
    const states = async () => Promise.all(SLEEPERS.map(async (run) => (await client.get(run).status()).state));
    expect(await states()).toEqual(["waiting", "waiting", "waiting", "waiting"]);
    await world.advance(2);
    await pawl.idle();
    await world.settle();
    expect(await states()).toEqual(["succeeded", "succeeded", "succeeded", "failed"]);
    expect(await client.get("patient").result()).toBe("late");
    expect(await errorOf(client.get("mortal").result())).toMatchObject({ code: "deadline_exceeded" });
  });
});
