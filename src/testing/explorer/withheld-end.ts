// The last entry, withheld
// Whoever replays a finished run without its last entry must come to the same end by itself (I5): nothing else may have decided it.

import type { Parked, StoredEntry } from "../../core/journal.ts";
import { isTerminal } from "../../core/transition.ts";
import { type Ending, History, type Scene } from "./history.ts";
import { type End, endOf, isSameEnd } from "./run-end.ts";
import type { Moment, World } from "./world.ts";

/** What was found when a run was replayed without its end. */
export interface OtherEnd {
  readonly run: string;
  readonly recorded: End;
  /** `null`: it came to no end. */
  readonly derived: End | null;
  /** Why it did not, if it is parked. */
  readonly parked: Parked | null;
  /** Steps that ran once more, although everything they did is recorded. */
  readonly steps: readonly string[];
  readonly world: World;
}

/** Replays every ended run of a world without its last entry; gives those that do not come to it again. */
export async function otherEnds(
  { world, rows }: Pick<Ending, "world" | "rows">,
  scene: Scene,
  worldAt: (moment: Moment) => World,
): Promise<readonly OtherEnd[]> {
  const found: OtherEnd[] = [];
  for (const { id, state } of rows) {
    if (!isTerminal(state)) continue;
    const other = await derive(id, world.journal(id), scene, worldAt(world.withoutEnd(id)));
    if (other !== null) found.push(other);
  }
  return found;
}

async function derive(
  run: string,
  journal: readonly StoredEntry[],
  scene: Scene,
  world: World,
): Promise<OtherEnd | null> {
  const { parked } = await new History(world, scene).watch();
  const [recorded, derived] = [endOf(run, journal), endOf(run, world.journal(run))];
  if (recorded === null) return null;
  if (isSameEnd(recorded, derived) && world.starts.length === 0) return null;
  const park = parked.get(run) ?? null;
  if (park !== null && isWithoutBody(journal.at(-2), park)) return null;
  const steps = world.starts.map(({ step }) => step);
  return { run, recorded, derived, parked: park, steps, world };
}

/** A run that was cancelled before it began, or while it was parked, was ended without its body: its body knows nothing of it (P19). */
function isWithoutBody(last: StoredEntry | undefined, { detail }: Parked): boolean {
  return last?.type === "run.cancelling" && detail?.["seq"] === last.seq;
}
