// Lives that are cut off at points of their own, many of them in one process: see kill-point.mjs.
import { expect } from "vitest";
import type { Child, EngineRequest, KillPoint } from "./child.ts";
import { inGroups } from "./world.ts";

const IN_ONE_PROCESS = 24;

interface Lives {
  /** An engine for a life that is to end there, with a store and a run of its own; `isAlone` says that another one has missed the point. */
  next(kill: KillPoint, isAlone: boolean): EngineRequest;
  live(engines: readonly EngineRequest[]): Promise<Child>;
  /** How many lives a process has. Alone, one dies in the middle of what it does, such as a transaction; of several, all but one have stopped there. */
  readonly together?: number;
}

/** A life that was cut off, and the process that it was in. */
export interface KilledLife {
  readonly kill: KillPoint;
  readonly run: string;
  readonly child: Child;
}

/** Every time that a point is reached in a life that reaches it so often. */
export function everyTime(point: string, times: number): KillPoint[] {
  return Array.from({ length: times }, (_, i) => ({ point, n: i + 1 }));
}

/** Ends a life at each of the points. One that is not among the returned was over before it came there. */
export async function killLives(kills: readonly KillPoint[], lives: Lives): Promise<KilledLife[]> {
  const { together = IN_ONE_PROCESS } = lives;
  const killed: KilledLife[] = [];
  const missed: KillPoint[] = [];
  await inGroups(kills, together, async (group) => {
    missed.push(...(await killTogether(group, lives, killed)));
  });
  // Others beside it change the time that things take, and so how much is written at once: alone, a life goes as the undisturbed one did.
  if (together === 1) return killed;
  await inGroups(missed, 1, async (group) => {
    await killTogether(group, lives, killed, true);
  });
  return killed;
}

/** Returns the points that were missed. */
async function killTogether(
  kills: readonly KillPoint[],
  { next, live }: Lives,
  killed: KilledLife[],
  isAlone = false,
): Promise<KillPoint[]> {
  const engines = kills.map((kill) => ({ ...next(kill, isAlone), kill }));
  const child = await live(engines);
  const over = child.said.filter(({ event }) => event === "missed").map(({ store }) => store);
  const isOver = over.length === kills.length;
  expect(await child.exited, child.report()).toEqual(isOver ? { code: 0, signal: null } : DEAD);
  for (const { kill, store, runs } of engines) {
    if (!over.includes(store)) killed.push({ kill, run: String(runs?.[0]?.id), child });
  }
  return engines.filter(({ store }) => over.includes(store)).map(({ kill }) => kill);
}

const DEAD = { code: null, signal: "SIGKILL" };
