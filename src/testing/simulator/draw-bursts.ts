// Drawing bursts
// A share of the seeds has starts that become one run. It draws from dice of its own: all other seeds stay what they were.
import { seededRandom } from "../../base/random.ts";
import type { BurstPlan } from "./scenario.ts";

/** How many seeds have one. */
const SHARE = 0.12;

/** A burst, or none. */
export function burstsOf(seed: number, processes: number): { readonly bursts?: readonly BurstPlan[] } {
  const random = seededRandom(`bursts ${seed}`).next;
  const one = <const T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  if (random() >= SHARE) return {};
  const waitMs = one([40, 300, 1500]);
  let at = one([0, 0, 400]);
  const starts = Array.from({ length: one([2, 3, 4]) }, () => {
    // Most come in time.
    at += Math.floor(random() * waitMs * one([0, 0.5, 1, 1, 2]));
    return { at, by: Math.floor(random() * processes) };
  });
  return { bursts: [{ waitMs, maxMs: one([null, null, 2000]), ms: one([0, 5, 100]), starts }] };
}
