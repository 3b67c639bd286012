import { LIMITS } from "../../core/limits.ts";
import type { ClaimedRun, ClaimRequest, Mail } from "../../core/store.ts";
import { isHandled } from "../version-line.ts";
import { nextStarts, Room } from "./limits.ts";
import { copyEntry, inCreationOrder, isOver, type MemoryRun, patchRow, type Tables, unreadOf } from "./tables.ts";

/** Hands out what is due and what is ready, by priority and age; at most one suspect, and only if asked for (P28). */
export function claim(tables: Tables, request: ClaimRequest, now: number): ClaimedRun[] {
  if (!tables.workers.has(request.worker) || request.limit < 1) return [];
  wakeDue(tables, now);
  const claimed: ClaimedRun[] = [];
  const room = new Room(tables, request.handles, now);
  let suspects = request.suspect ? 1 : 0;
  for (const run of readyRuns(tables, request)) {
    if (claimed.length >= request.limit) break;
    if (!room.lets(run)) continue;
    if (isSuspect(run) && suspects-- <= 0) continue;
    room.take(run);
    take(run, request.worker);
    claimed.push(claimedRun(run));
  }
  return claimed;
}

function wakeDue(tables: Tables, now: number): void {
  for (const run of tables.runs.values()) {
    const wakeAt = alarmOf(run);
    if (wakeAt === null || wakeAt > now) continue;
    patchRow(run, { readyAt: Math.min(run.row.readyAt ?? wakeAt, wakeAt), wakeAt: null });
  }
}

/** When time alone wakes this run. */
function alarmOf({ row }: MemoryRun): number | null {
  return row.owner === null && row.state !== "parked" ? row.wakeAt : null;
}

export function nextWake(tables: Tables, now: number): number | null {
  const alarms = [...tables.runs.values()].map(alarmOf).filter((wakeAt) => wakeAt !== null);
  alarms.push(...nextStarts(tables, now));
  return alarms.length === 0 ? null : alarms.reduce((a, b) => Math.min(a, b));
}

function readyRuns(tables: Tables, { handles }: ClaimRequest): MemoryRun[] {
  return [...tables.runs.values()]
    .filter(({ row }) => row.readyAt !== null && row.owner === null)
    .filter((run) => !isOver(run) && isHandled(handles, run.row.workflow, run.row.version))
    .sort(
      (a, b) =>
        b.row.priority - a.row.priority ||
        (a.row.readyAt as number) - (b.row.readyAt as number) ||
        inCreationOrder(a, b),
    );
}

/** A run that died often enough to be dangerous to others (P28). */
function isSuspect(run: MemoryRun): boolean {
  return run.row.claims >= LIMITS.deathsAmongOthers;
}

function take(run: MemoryRun, worker: string): void {
  run.claimedHead = run.journal.length;
  const claims = run.row.claims + 1;
  patchRow(run, { owner: worker, state: "running", readyAt: null, wakeAt: null, claims, rate: null });
}

/** Loads a run of this worker, or takes one that nobody owns without counting it as a claim: no body will run (P19). */
export function takeOne(tables: Tables, worker: string, id: string, isSlotless = false): ClaimedRun | null {
  const run = tables.runs.get(id);
  if (run === undefined || isOver(run) || !tables.workers.has(worker)) return null;
  if (run.row.owner === null && !isSlotless && isStandingInLine(run)) return null;
  if (run.row.owner === null) patchRow(run, { owner: worker, readyAt: null, wakeAt: null });
  return run.row.owner === worker ? claimedRun(run) : null;
}

/** It has begun, and goes on when it has its slot again. */
function isStandingInLine({ row }: MemoryRun): boolean {
  return row.slot !== null && row.cancel === null && row.state !== "accepted";
}

function claimedRun(run: MemoryRun): ClaimedRun {
  return {
    ...mailOf(run),
    row: run.row,
    journal: run.journal.map(copyEntry),
  };
}

export function mailOf(run: MemoryRun): Mail {
  const { id, wake, cancel } = run.row;
  return { run: id, head: run.journal.length, wake, cancel, inbox: unreadOf(run) };
}
