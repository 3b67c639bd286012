// Runs that were written together go on a slice at a time (C5).
import { expect, it } from "vitest";
import { PawlError } from "../../src/base/errors.ts";
import { onMachine } from "../../src/client/machine.ts";
import { Pawl } from "../../src/client/pawl.ts";
import { LIMITS } from "../../src/core/limits.ts";
import type { Commit, Store } from "../../src/core/store.ts";
import { workflow } from "../../src/core/workflow.ts";
import { memoryStore } from "../../src/stores/memory/memory-store.ts";
import { gate, nextRound } from "./harness.ts";

const RUNS = 3 * LIMITS.sliceRuns;

/** A memory store that shows every commit that it has applied. */
function watched(applied: (commit: Commit) => void): Store {
  const store = memoryStore();
  const commit = async (request: Commit) => {
    const verdicts = await store.commit(request);
    applied(request);
    return verdicts;
  };
  return { ...store, commit };
}

it("I6 P13 of many runs that advance together, only one slice has steps begun that are not recorded", async () => {
  let open = 0;
  let most = 0;
  const store = watched(({ runs }) => {
    for (const entry of runs.flatMap(({ entries }) => entries)) if (entry.type === "step.completed") open--;
  });
  const steps = workflow("steps", async (ctx) => {
    for (let i = 0; i < 5; i++) {
      await ctx.step("next", () => {
        most = Math.max(most, ++open);
      });
    }
  });
  const pawl = await Pawl.open(store, { workflows: [steps], concurrency: RUNS });
  const runs = await Promise.all(Array.from({ length: RUNS }, () => pawl.start(steps)));
  await Promise.all(runs.map((run) => run.result()));
  expect(most).toBe(LIMITS.sliceRuns);
  expect(open).toBe(0);
  await pawl.close();
});

it("I6 P13 one slice alone is ahead of the disk while others write, and while the disk is full", async () => {
  let open = 0;
  let most = 0;
  let commits = 0;
  const store = watched(({ runs }) => {
    for (const entry of runs.flatMap(({ entries }) => entries))
      if (entry.type === "step.completed" && !entry.key?.startsWith("slow")) open--;
  });
  const { commit } = store;
  const oftenFull: Store = {
    ...store,
    commit(request) {
      if (++commits % 5 === 0) throw new PawlError("storage_unavailable", "The disk is full.");
      return commit(request);
    },
  };
  const quick = workflow("quick", async (ctx) => {
    for (let i = 0; i < 5; i++) {
      await ctx.step("quick", () => {
        most = Math.max(most, ++open);
      });
    }
  });
  const slow = workflow("slow", async (ctx, rounds: number) => {
    for (let i = 0; i < 10; i++) {
      await ctx.step("slow", async () => {
        for (let round = 0; round < rounds; round++) await nextRound();
      });
    }
  });
  const options = { workflows: [quick, slow], concurrency: 20, logger: silent };
  const pawl = await Pawl.open(oftenFull, onMachine(options, { sliceRuns: 3 }));
  const runs = await Promise.all(
    Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? pawl.start(quick) : pawl.start(slow, n % 7))),
  );
  await Promise.all(runs.map((run) => run.result()));
  expect(most).toBe(3);
  expect(open).toBe(0);
  await pawl.close();
});

it("I2 a start is acknowledged when it is durable, though its run goes on in a later slice", async () => {
  const begun: number[] = [];
  const { passed, open } = gate();
  const store = memoryStore();
  let commits = 0;
  const slow: Store = {
    ...store,
    async commit(request) {
      if (++commits === 2) await passed;
      return store.commit(request);
    },
  };
  const steps = workflow("steps", (ctx, n: number) => ctx.step("step", () => void begun.push(n)));
  const pawl = await Pawl.open(slow, onMachine({ workflows: [steps] }, { sliceRuns: 1 }));
  const runs = await Promise.all([0, 1, 2].map((n) => pawl.start(steps, n)));
  for (let i = 0; i < 20; i++) await nextRound();
  expect(begun).toEqual([0]);
  open();
  await Promise.all(runs.map((run) => run.result()));
  expect(begun).toEqual([0, 1, 2]);
  await pawl.close();
});

it("I11 steps that take their time do not hold up the other slices", async () => {
  const { passed, open } = gate();
  let begun = 0;
  const { passed: allBegun, open: tell } = gate();
  const slow = workflow("slow", async (ctx) => {
    await ctx.step("first", () => 1);
    await ctx.step("slow", () => {
      if (++begun === RUNS) tell();
      return passed;
    });
  });
  const pawl = await Pawl.open(memoryStore(), { workflows: [slow], concurrency: RUNS });
  const runs = await Promise.all(Array.from({ length: RUNS }, () => pawl.start(slow)));
  await allBegun;
  open();
  await Promise.all(runs.map((run) => run.result()));
  await pawl.close();
});

it("I2 P17 P37 whoever has not been told when the outcome of a commit is unknown begins nothing before it is compared with the store", async () => {
  const begun = new Map<string, number>();
  const atLoss = gate<number>();
  const back = gate();
  let commits = 0;
  const store = memoryStore();
  const losing: Store = {
    ...store,
    async fence(request) {
      await back.passed;
      return store.fence(request);
    },
    async commit(request) {
      const verdicts = await store.commit(request);
      // The first slice has gone on; two others, applied as well, have not been told.
      if (++commits !== 4) return verdicts;
      atLoss.open(begun.size);
      throw new Error("the answer was lost");
    },
  };
  const steps = workflow("steps", async (ctx, n: number) => {
    for (let i = 0; i < 4; i++) {
      await ctx.step(`step ${i}`, ({ key }) => {
        begun.set(key, (begun.get(key) ?? 0) + 1);
      });
    }
    return n;
  });
  const options = { workflows: [steps], concurrency: 9, logger: silent };
  const pawl = await Pawl.open(losing, onMachine(options, { sliceRuns: 3 }));
  const runs = await Promise.all(Array.from({ length: 9 }, (_, n) => pawl.start(steps, n)));
  const before = await atLoss.passed;
  for (let i = 0; i < 50; i++) await nextRound();
  expect(begun.size).toBe(before);
  back.open();
  expect(await Promise.all(runs.map((run) => run.result()))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  expect(begun.size).toBe(9 * 4);
  expect([...begun.values()].filter((times) => times > 1)).toEqual([]);
  await pawl.close();
});

const silent = { debug() {}, info() {}, warn() {}, error() {} };

it("I11 P13 steps that save and then wait for those of all other runs keep nobody from going on", async () => {
  const all = gate();
  let saved = 0;
  const meeting = workflow("meeting", async (ctx) =>
    ctx.step("s", async ({ save }) => {
      for (let n = 0; n < 3; n++) await save(n);
      if (++saved === RUNS) all.open();
      await all.passed;
      await save("met");
      return "done";
    }),
  );
  const pawl = await Pawl.open(memoryStore(), { workflows: [meeting], concurrency: RUNS });
  const runs = await Promise.all(Array.from({ length: RUNS }, () => pawl.start(meeting)));
  expect(new Set(await Promise.all(runs.map((run) => run.result())))).toEqual(new Set(["done"]));
  await pawl.close();
});
