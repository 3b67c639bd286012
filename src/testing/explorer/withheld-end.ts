// The last entry, withheld
// Whoever replays a finished run without its last entry must come to the same end by itself (I5): nothing else may have decided it.

import type { Parked, StoredEntry } from "../../core/journal.ts";
import type { RunRow, Store } from "../../core/store.ts";
import { isTerminal } from "../../core/transition.ts";
import { History, type Scene } from "./history.ts";
import { type End, endOf, isSameEnd } from "./run-end.ts";
import type { World } from "./world.ts";

/** What was found when a run was replayed without its end. */
export interface OtherEnd {
  readonly run: string;
  readonly recorded: End;
  /** `null`: it came to no end. */
  readonly derived: End | null;
  /** Why it did not, if it is parked. */
  readonly parked: string | null;
  /** Steps that ran once more, although everything they did is recorded. */
  readonly steps: readonly string[];
  readonly world: World;
}

/** Replays every ended run of a store without its last entry; gives those that do not come to it again. */
export async function otherEnds(
  store: Store,
  rows: readonly RunRow[],
  scene: Scene,
  newWorld: () => World,
): Promise<readonly OtherEnd[]> {
  const found: OtherEnd[] = [];
  for (const row of rows.filter(({ state }) => isTerminal(state))) {
    const journal = await store.journal(row.id);
    const other = await derive(row, journal, scene, newWorld());
    if (other !== null) found.push(other);
  }
  return found;
}

async function derive(
  row: RunRow,
  journal: readonly StoredEntry[],
  scene: Scene,
  world: World,
): Promise<OtherEnd | null> {
  const kept = journal.slice(0, -1);
  world.clock.advance(Math.max(0, (kept.at(-1)?.at ?? 0) - world.clock.now()));
  await plant(world.store, row, kept);
  const { parked } = await new History(world, scene).watch();
  const [recorded, derived] = [endOf(row.id, journal), endOf(row.id, await world.store.journal(row.id))];
  if (recorded === null) return null;
  if (isSameEnd(recorded, derived) && world.starts.length === 0) return null;
  const park = parked.get(row.id) ?? null;
  if (park !== null && isWithoutBody(kept, park)) return null;
  const steps = world.starts.map(({ step }) => step);
  return { run: row.id, recorded, derived, parked: park?.message ?? null, steps, world };
}

/** A run that was cancelled before it began, or while it was parked, was ended without its body: its body knows nothing of it (P19). */
function isWithoutBody(kept: readonly StoredEntry[], { detail }: Parked): boolean {
  const last = kept.at(-1);
  return last?.type === "run.cancelling" && detail?.["seq"] === last.seq;
}

/** Puts a run with these entries into a store, unowned and ready, as a fenced worker would have left it. */
async function plant(store: Store, row: RunRow, entries: readonly StoredEntry[]): Promise<void> {
  const { workflow, version, traceId, key, tags, priority, parent, origin, deadline, codec } = row;
  const create = { workflow, version, traceId, key, tags, priority, parent, origin, deadline, codec };
  const readyAt = store.clock.now();
  await store.commit({
    worker: null,
    runs: [{ run: row.id, head: 0, entries, create: { ...create, claimed: false, readyAt } }],
  });
}
