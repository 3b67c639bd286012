import { expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { memoryStore, Pawl, workflow } from "../../src/index.ts";

it("P5 I10 a wait that times out before its run is durable asks again, and does not hang", async () => {
  const patient = workflow("patient", (ctx) => ctx.waitFor("answer", { timeout: "20ms", default: "none" }));
  const clock = manualClock();
  const store = memoryStore({ clock });
  let release: () => void = () => {};
  const isHeld = new Promise<void>((resolve) => {
    release = resolve;
  });
  let asked: () => void = () => {};
  const wasAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const slow = {
    ...store,
    commit: async (commit: Parameters<typeof store.commit>[0]) => {
      // The disk is slow, and the time passes meanwhile.
      clock.advance(30);
      await isHeld;
      return store.commit(commit);
    },
    owned: async (worker: string, options: { news: boolean }) => {
      const owned = await store.owned(worker, options);
      if (!options.news) asked();
      return owned;
    },
  };
  const pawl = await Pawl.open(slow, { workflows: [patient], poll: 5 });
  const result = pawl.run(patient);
  await wasAsked;
  release();
  expect(await result).toBe("none");
  await pawl.close();
});
