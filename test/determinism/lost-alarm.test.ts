// A sleeping run is found idle when a turn closes and is suspended when the committer comes for it, a moment later. If its time has come
// nearer in between, or has come, it is not suspended: then something else has to wake it (P5, P33, I10).
import { expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { Pawl } from "../../src/client/pawl.ts";
import type { Commit, Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";

it.each([
  ["is within a second", 600],
  ["has come", 2000],
])("P33: a run whose time %s by the time the committer comes wakes all the same", async (_, passedMs) => {
  const clock = manualClock();
  const store = afterCommit(memoryStore({ clock }), 1, () => clock.advance(passedMs));
  const sleeper = workflow({ name: "sleeper", guard: "off" }, async (ctx) => {
    await ctx.sleep(1500);
    return "awake";
  });
  const pawl = await Pawl.open(store, { workflows: [sleeper], handleSignals: false });
  try {
    const run = await pawl.start(sleeper);
    await pawl.idle();
    for (let i = 0; i < 5; i++) {
      clock.advance(1000);
      await pawl.idle();
    }
    expect((await run.status()).state).toBe("succeeded");
  } finally {
    await pawl.close({ drain: 0 });
  }
});

/** Calls `fn` when the n-th commit is applied, before its answer goes out. */
function afterCommit(store: Store, n: number, fn: () => void): Store {
  let commits = 0;
  return {
    ...store,
    async commit(commit: Commit) {
      const verdicts = await store.commit(commit);
      if (++commits === n) fn();
      return verdicts;
    },
  };
}
