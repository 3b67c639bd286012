// A run is found idle when a turn closes, and suspended when the committer comes for it, which may be a whole commit later. If its time has
// come, or has come near, in between, it is not suspended: then something else has to wake it (P33, I10).
import { expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { Pawl } from "../../src/client/pawl.ts";
import { workflow } from "../../src/core/workflow.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";

const macrotasks = async (n: number) => {
  for (let i = 0; i < n; i++) await new Promise<void>((resolve) => void setImmediate(resolve));
};

it.each([
  ["is within a second", 600],
  ["has come", 2000],
])("P33, I10: a run whose time %s when the committer comes for it wakes all the same", async (_, passedMs) => {
  const clock = manualClock();
  const store = memoryStore({ clock });
  let endSecond: () => void = () => {};
  const sleeper = workflow({ name: "sleeper", guard: "off" }, async (ctx) => {
    const second = new Promise<void>((resolve) => {
      endSecond = resolve;
    });
    await Promise.all([ctx.step("first", () => 1), ctx.step("second", () => second)]);
    await ctx.sleep(1500);
    return "awake";
  });
  const pawl = await Pawl.open(
    {
      ...store,
      async commit(commit) {
        const verdicts = await store.commit(commit);
        const isFirst = commit.runs.some(({ entries }) =>
          entries.some(({ type, key }) => type === "step.completed" && key === "first"),
        );
        if (!isFirst) return verdicts;
        // While this answer is under way the body goes to sleep, and time passes.
        endSecond();
        await macrotasks(5);
        clock.advance(passedMs);
        return verdicts;
      },
    },
    { workflows: [sleeper], handleSignals: false },
  );
  try {
    const run = await pawl.start(sleeper);
    for (let i = 0; i < 5; i++) {
      await macrotasks(20);
      clock.advance(1000);
    }
    await macrotasks(20);
    expect((await run.status()).state).toBe("succeeded");
  } finally {
    await pawl.close({ drain: 0 });
  }
});
