// Drawing steps that save on their way
// A share of the seeds has runs with such a step before or beside what they do otherwise. It draws from dice of its own: all other seeds stay what
// they were.
import { seededRandom } from "../../base/random.ts";
import type { Program } from "./program.ts";
import type { RunPlan } from "./scenario.ts";

/** How many seeds have them. */
const SHARE = 0.2;

/** Some of these runs, or none, have a step that saves. */
export function withSaves(seed: number, runs: readonly RunPlan[]): readonly RunPlan[] {
  const random = seededRandom(`saves ${seed}`).next;
  const one = <const T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  if (random() >= SHARE) return runs;
  return runs.map((run) => {
    const save: Program = {
      op: "save",
      times: one([1, 2, 3, 5]),
      fails: one([0, 0, 1, 2]),
      ms: one([0, 5, 100, 1500]),
    };
    const of = one([
      [save, run.program],
      [save, save, run.program],
    ] as const);
    return { ...run, program: { op: one(["seq", "all"]), of } };
  });
}
