// A step with `recovery: "fail"` begins at most once, wherever its process is killed.

import { expect, it, vi } from "vitest";
import { live } from "./child.ts";
import { stepsOf } from "./step-story.ts";
import { inGroups, TOUR, World } from "./world.ts";
import { killEverywhere, type Scene, undisturbed, type Wreck } from "./wrecks.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 600_000 });

const scene: Scene = { file: TOUR, run: { workflow: "careful", input: null } };

it('I6 a step with recovery "fail", killed at every point, begins at most once: it ended, or the run fails and says that it was interrupted', async () => {
  const world = new World();
  const whole = await undisturbed(scene, world);
  expect(whole.output).toBe("launched");
  const { wrecks, reached } = await killEverywhere(scene, world, whole);
  expect(reached.effect).toBe(3);
  const ends = new Map<string, number>();
  await inGroups(wrecks, 20, async (group) => {
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
