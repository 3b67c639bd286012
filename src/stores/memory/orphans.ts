import type { OrphanRow, WaitRow } from "../../core/store.ts";
import { childMessageId } from "../../core/wakeups.ts";
import { WHY_ORPHAN } from "../why-orphan.ts";
import { inCreationOrder, isOver, type MemoryRun, patchRow, type Tables } from "./tables.ts";

/** Unfinished runs that are neither claimable, nor owned, nor parked, nor waiting for something that exists and comes in time (I10). */
export function orphans(tables: Tables): OrphanRow[] {
  return [...tables.runs.values()].sort(inCreationOrder).flatMap((run) => {
    const why = whyOrphan(tables, run);
    return why === null ? [] : [{ run: run.row.id, state: run.row.state, why }];
  });
}

/** Only what is still an orphan is made claimable: the list may be old (B18). */
export function adopt(tables: Tables, ids: readonly string[], now: number): number {
  let adopted = 0;
  for (const id of ids) {
    const run = tables.runs.get(id);
    if (run === undefined || whyOrphan(tables, run) === null) continue;
    patchRow(run, { owner: null, readyAt: now, wakeAt: null });
    adopted += 1;
  }
  return adopted;
}

function whyOrphan(tables: Tables, run: MemoryRun): string | null {
  const { owner, readyAt, wakeAt, state } = run.row;
  if (isOver(run)) return null;
  if (owner !== null) return tables.workers.has(owner) ? null : WHY_ORPHAN.owner;
  if (readyAt !== null || state === "parked") return null;
  const hasSource = wakeAt !== null || [...run.waits.values()].some((wait) => isWakeSource(tables, run, wait));
  if (!hasSource) return WHY_ORPHAN.source;
  return state !== "accepted" && (wakeAt ?? Number.POSITIVE_INFINITY) > nextDue(run) ? WHY_ORPHAN.alarm : null;
}

/** When the run must be awake at the latest, whatever else it waits for. */
function nextDue({ row, waits }: MemoryRun): number {
  const times = [row.deadline, ...[...waits.values()].map(({ due }) => due)];
  return times.reduce<number>((first, time) => Math.min(first, time ?? first), Number.POSITIVE_INFINITY);
}

/** A timer and a retry have their source in `wakeAt`; a child must be unfinished, or its message unread. */
function isWakeSource(tables: Tables, run: MemoryRun, wait: WaitRow): boolean {
  if (wait.kind === "timer" || wait.kind === "retry") return false;
  if (wait.kind !== "child") return true;
  const child = tables.runs.get(wait.name);
  return (child !== undefined && !isOver(child)) || hasUnread(run, childMessageId(wait.name));
}

function hasUnread(run: MemoryRun, id: string): boolean {
  return run.inbox.some(({ row, isConsumed }) => row.id === id && !isConsumed);
}
