// Lives that were cut off: a scene is played again and again and killed at every point in turn.
import { expect } from "vitest";
import { live, type RunRequest, type Said } from "./child.ts";
import { everyTime, type KilledLife, killLives } from "./killed-lives.ts";
import type { Remains, World } from "./world.ts";

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
  const kills = POINTS.flatMap((point) => everyTime(point, whole.reached[point]));
  const killed = await killLives(kills, {
    next({ point, n }, isAlone) {
      const run = { ...scene.run, id: `${point}-${n}${isAlone ? "-alone" : ""}` };
      return { store: world.store(run.id), runs: [run] };
    },
    live: (engines) =>
      live({ engines, files: [scene.file], pulse: scene.pulse === true }, { env: { ...world.env, ...scene.env } }),
    // One that has stopped must not go on to say that it is alive.
    ...(scene.pulse === true && { together: 1 }),
  });
  const counts = POINTS.map((point) => [point, killed.filter(({ kill }) => kill.point === point).length]);
  const wrecks = await Promise.all(killed.map((life) => wreckOf(life, world)));
  return { wrecks, reached: Object.fromEntries(counts) as Reached };
}

async function wreckOf({ run, child }: KilledLife, world: World): Promise<Wreck> {
  const remains = await world.remains(run, run);
  return { run, remains, seen: world.seenOf(run).length, said: child.said, report: `${run} ${child.report()}` };
}
