// A step with `recovery: "fail"` begins at most once, whatever happens to its process or to its store.

import { expect, it, vi } from "vitest";
import { hasCode, memoryStore, Pawl, workflow } from "../../src/index.ts";
import { faultStore } from "../../src/testing/index.ts";
import { live } from "./child.ts";
import { stepsOf } from "./step-story.ts";
import { inGroups, TOUR, World } from "./world.ts";
import { killEverywhere, type Scene, undisturbed, type Wreck } from "./wrecks.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 140_000 });

const scene: Scene = { file: TOUR, run: { workflow: "careful", input: null } };

it('I6 a step with recovery "fail", killed at every point, begins at most once: it ended, or the run fails and says that it was interrupted', async () => {
  const world = new World();
  expect((await undisturbed(scene, world)).output).toBe("launched");
  const { wrecks, reached } = await killEverywhere(scene, world);
  expect(reached.effect).toBe(3);
  const ends = new Map<string, number>();
  await inGroups(wrecks, 8, async (group) => {
    for (const end of await finish(group, world)) ends.set(end, (ends.get(end) ?? 0) + 1);
  });
  expect([...ends.keys()].sort()).toEqual(["failed", "succeeded"]);
});

/** Lets a new process go on with what is left; returns how each run ended. */
async function finish(wrecks: readonly Wreck[], world: World): Promise<string[]> {
  const engines = wrecks.map(({ run }) => ({ store: world.store(run), runs: [{ ...scene.run, id: run }] }));
  const child = await live({ engines, files: [scene.file] }, { env: world.env });
  expect(await child.exited, child.report()).toEqual({ code: 0, signal: null });
  return Promise.all(
    wrecks.map(async ({ run, remains, report }) => {
      const launch = stepsOf(remains.journal).get("launch");
      const wasInterrupted = launch?.starts === 1 && launch.outcomes === 0;
      const result = await child.result(run);
      if (wasInterrupted) expect(result, report).toMatchObject({ error: { code: "step_interrupted" } });
      else expect(result, report).toBe("launched");
      const launches = world.seenOf(run).filter(({ action }) => action === "launch").length;
      if (wasInterrupted) expect(launches, report).toBeLessThanOrEqual(1);
      else expect(launches, report).toBe(1);
      const { journal, status, orphans } = await world.remains(run, run);
      expect(stepsOf(journal).get("launch"), report).toMatchObject({ starts: 1, outcomes: 1 });
      expect(orphans, report).toEqual([]);
      return String(status?.state);
    }),
  );
}

it('I6 P17 a step with recovery "fail" begins once when the answer to any one commit is lost: the process lives, and knows', async () => {
  for (let lost = 1; ; lost++) {
    let launches = 0;
    const careful = workflow("careful", async (ctx) => {
      await ctx.step("prepare", () => {});
      await ctx.step("launch", () => void launches++, { recovery: "fail" });
      await ctx.step("report", () => {});
      return "launched";
    });
    const store = faultStore(memoryStore(), { commits: { [lost]: "lose-answer" } });
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const pawl = await Pawl.open(store, { workflows: [careful], logger, handleSignals: false });
    const run = await pawl.start(careful, undefined, { id: "r" });
    expect(await run.result().catch((error: unknown) => hasCode(error, "step_interrupted")), `lost ${lost}`).toBe(
      "launched",
    );
    expect(launches, `the answer to commit ${lost} was lost`).toBe(1);
    await pawl.close();
    if (store.commits.every(({ fault }) => fault === null)) return expect(lost).toBeGreaterThan(3);
  }
});
