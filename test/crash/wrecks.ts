// Lives that were cut off: a scene is played again and again and killed at every point in turn.
import { expect } from "vitest";
import { type KillPoint, live, type RunRequest, type Said } from "./child.ts";
import { everyNumber, type Remains, type World } from "./world.ts";

export interface Scene {
  readonly file: string;
  readonly run: Omit<RunRequest, "id">;
  readonly env?: Readonly<Record<string, string>>;
  /** With a thread for heartbeats, as users have it. Default false: see engine-process.mjs. */
  readonly pulse?: boolean;
}

/** A life that was cut off, what it said and what it left. */
export interface Wreck {
  readonly run: string;
  readonly remains: Remains;
  /** How much the outside had seen of it. */
  readonly seen: number;
  readonly said: readonly Said[];
  readonly report: string;
}

export interface Whole {
  readonly output: unknown;
  readonly remains: Remains;
  readonly said: readonly Said[];
  readonly reached: Reached;
}

const POINTS = ["before-commit", "after-commit", "effect"] as const;
export type Reached = Readonly<Record<(typeof POINTS)[number], number>>;

/** The scene as it goes when nothing happens to it. */
export async function undisturbed(scene: Scene, world: World): Promise<Whole> {
  const run = { ...scene.run, id: "undisturbed" };
  const engines = [{ store: world.store(run.id), runs: [run] }];
  const child = await live(
    { engines, files: [scene.file], pulse: scene.pulse === true },
    { env: { ...world.env, ...scene.env } },
  );
  expect(await child.exited, child.report()).toEqual({ code: 0, signal: null });
  const counts = POINTS.map(async (point) => [point, await child.reached(point)]);
  return {
    output: await child.result(run.id),
    remains: await world.remains(run.id, run.id),
    said: child.said,
    reached: Object.fromEntries(await Promise.all(counts)) as Reached,
  };
}

/** Kills the scene at every point that a whole life has reached, each time in a store of its own. */
export async function killEverywhere(
  scene: Scene,
  world: World,
  whole: Whole,
): Promise<{ wrecks: Wreck[]; reached: Reached }> {
  const wrecks: Wreck[] = [];
  const reached: Record<(typeof POINTS)[number], number> = { "before-commit": 0, "after-commit": 0, effect: 0 };
  for (const point of POINTS) {
    reached[point] = await everyNumber(whole.reached[point], async (n) => {
      const wreck = await killedAt({ point, n }, scene, world);
      if (wreck !== null) wrecks.push(wreck);
      return wreck !== null;
    });
  }
  return { wrecks, reached };
}

/** `null` if everything was over before that point was reached. */
async function killedAt(kill: KillPoint, scene: Scene, world: World): Promise<Wreck | null> {
  const run = { ...scene.run, id: `${kill.point}-${kill.n}` };
  const engines = [{ store: world.store(run.id), runs: [run] }];
  const child = await live(
    { engines, files: [scene.file], kill, pulse: scene.pulse === true },
    { env: { ...world.env, ...scene.env } },
  );
  const exit = await child.exited;
  if (exit.code === 0) return null;
  const report = `${run.id} ${child.report()}`;
  expect(exit.signal, report).toBe("SIGKILL");
  const remains = await world.remains(run.id, run.id);
  return { run: run.id, remains, seen: world.seenOf(run.id).length, said: child.said, report };
}
