// What stands in line
// Runs that could go on at once and have no worker yet: of each workflow, of each slot and of each rate. Only so many unfinished runs are looked at.
import { rateLimit, slotLimit } from "../core/flow-control.ts";
import { LIMITS } from "../core/limits.ts";
import type { RunRow, Store, WorkerRow } from "../core/store.ts";
import { isTerminal, RUN_STATES } from "../core/transition.ts";

/** A line of runs. */
export interface QueueStatus {
  /** "workflow": runs that need nothing but a worker. "slot", "rate": those that also need a place or their turn. */
  readonly kind: "workflow" | "slot" | "rate";
  /** The workflow, and behind a slash the key of a slot or rate. */
  readonly name: string;
  /** How many may be under way, or begin in `perMs`; `null`: any number, or no worker knows. */
  readonly limit: number | null;
  readonly perMs: number | null;
  /** Runs that a worker has. */
  readonly running: number;
  /** Runs that stand in line. */
  readonly waiting: number;
  /** Since when the first of them could go on. */
  readonly since: Date | null;
}

type Draft = { -readonly [K in keyof QueueStatus]: QueueStatus[K] };

const MAX_RUNS = 10_000;
const UNFINISHED = RUN_STATES.filter((state) => !isTerminal(state));

/** All lines that have runs in them. */
export async function examineQueues(store: Store): Promise<{ queues: readonly QueueStatus[]; isComplete: boolean }> {
  const workers = await store.workers();
  const queues = new Map<string, Draft>();
  let before: string | undefined;
  for (let seen = 0; seen < MAX_RUNS; ) {
    const rows = await store.runs({
      states: UNFINISHED,
      limit: LIMITS.listPageMax,
      ...(before !== undefined && { before }),
    });
    for (const row of rows) count(queues, workers, row);
    if (rows.length < LIMITS.listPageMax) return { queues: sorted(queues), isComplete: true };
    seen += rows.length;
    before = rows.at(-1)?.id;
  }
  return { queues: sorted(queues), isComplete: false };
}

function count(queues: Map<string, Draft>, workers: readonly WorkerRow[], row: RunRow): void {
  const isReady = row.readyAt !== null && row.owner === null && row.state !== "parked";
  if (!isReady && row.owner === null) return;
  for (const queue of queuesOf(queues, workers, row)) {
    if (row.owner !== null) queue.running++;
    else queue.waiting++;
    if (isReady && row.readyAt !== null && row.readyAt < (queue.since?.getTime() ?? Infinity))
      queue.since = new Date(row.readyAt);
  }
}

function queuesOf(queues: Map<string, Draft>, workers: readonly WorkerRow[], row: RunRow): Draft[] {
  const { slot, rate, workflow } = row;
  const found = (kind: QueueStatus["kind"], name: string, limits: Pick<Draft, "limit" | "perMs">): Draft => {
    const known = queues.get(`${kind}\n${name}`);
    const queue = known ?? { kind, name, ...limits, running: 0, waiting: 0, since: null };
    queues.set(`${kind}\n${name}`, queue);
    return queue;
  };
  const handles = workers.flatMap((worker) => worker.handles);
  const all = slot === null ? [found("workflow", workflow, { limit: null, perMs: null })] : [];
  if (slot !== null) all.push(found("slot", slot, { limit: slotLimit(handles, slot), perMs: null }));
  if (rate !== null) {
    const limits = rateLimit(handles, rate);
    all.push(found("rate", rate, { limit: limits?.limit ?? null, perMs: limits?.perMs ?? null }));
  }
  return all;
}

function sorted(queues: ReadonlyMap<string, QueueStatus>): readonly QueueStatus[] {
  return [...queues.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}
