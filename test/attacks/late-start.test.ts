import { expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { memoryStore, workflow } from "../../src/index.ts";
import { gate } from "../behaviour/harness.ts";
import { openOn, rounds } from "./rig.ts";

it.each(["before", "after"])(
  "P5 I10 a wait that times out before its run is durable is answered as soon as it is, asked %s its commit was applied",
  async (order) => {
    const patient = workflow("patient", (ctx) => ctx.waitFor("answer", { timeout: "20ms", default: "none" }));
    const clock = manualClock();
    const store = memoryStore({ clock });
    const [disk, asked, answer] = [gate(), gate(), gate()];
    const overrides = {
      commit: async (commit: Parameters<typeof store.commit>[0]) => {
        // The disk is slow, and the time passes meanwhile.
        clock.advance(30);
        await disk.passed;
        return store.commit(commit);
      },
      owned: async (worker: string, options: { news: boolean }) => {
        const owned = await store.owned(worker, options);
        if (options.news) return owned;
        asked.open();
        await answer.passed;
        return owned;
      },
    };
    // No poll comes to its help.
    const pawl = await openOn(store, overrides, [patient], { poll: "1 hour" });
    const result = pawl.run(patient);
    await asked.passed;
    for (const next of order === "before" ? [answer, disk] : [disk, answer]) {
      next.open();
      await rounds(20);
    }
    expect(await result).toBe("none");
  },
);
