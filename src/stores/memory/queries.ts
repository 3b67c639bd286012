import { PawlError } from "../../base/errors.ts";
import { countersOf } from "../../core/counters.ts";
import type { StoredEntry } from "../../core/journal.ts";
import type { PurgeRequest, RunCounts, RunFilter, RunQuery } from "../../core/run-query.ts";
import type {
  CounterRow,
  RunRow,
  StateRow,
  UnclaimedQuery,
  UnclaimedRow,
  WaitQuery,
  WaitRow,
} from "../../core/store.ts";
import { RUN_STATES, type RunState } from "../../core/transition.ts";
import { countsOf } from "../run-counts.ts";
import { versionLine } from "../version-line.ts";
import { byText } from "./by-text.ts";
import { forgetStarts } from "./limits.ts";
import { copyData, copyEntry, inCreationOrder, isOver, type MemoryRun, type Tables } from "./tables.ts";

export function listRuns(tables: Tables, query: RunQuery): RunRow[] {
  const before = query.before === undefined ? Number.POSITIVE_INFINITY : cursorOf(tables, query.before);
  return [...tables.runs.values()]
    .filter((run) => run.n < before && matches(run.row, query))
    .sort((a, b) => inCreationOrder(b, a))
    .slice(0, query.limit)
    .map((run) => run.row);
}

function cursorOf(tables: Tables, id: string): number {
  const run = tables.runs.get(id);
  if (run !== undefined) return run.n;
  throw new PawlError(
    "run_not_found",
    `The page cursor ${id} names a run that is gone. List again from the first page.`,
    {
      fields: { run: id },
    },
  );
}

/** Counts up to the bound, state by state. */
export function countRuns(tables: Tables, filter: RunFilter, bound: number): RunCounts {
  const found = new Map<RunState, number>(RUN_STATES.map((state) => [state, 0]));
  for (const { row } of tables.runs.values())
    if (matches(row, filter)) found.set(row.state, (found.get(row.state) ?? 0) + 1);
  return countsOf(found, bound);
}

function matches(row: RunRow, query: RunFilter): boolean {
  const { except, among, search } = query;
  if (except?.includes(row.workflow)) return false;
  if (among !== undefined && !among.some((one) => one.workflow === row.workflow && one.states.includes(row.state)))
    return false;
  if (search !== undefined && !textsOf(row).some((text) => text.startsWith(search))) return false;
  if (query.workflow !== undefined && row.workflow !== query.workflow) return false;
  if (query.states !== undefined && !query.states.includes(row.state)) return false;
  if (query.tag !== undefined && !row.tags.includes(query.tag)) return false;
  if (query.parent !== undefined && row.parent?.run !== query.parent) return false;
  if (query.slot !== undefined && (row.slot !== query.slot || row.owner === null)) return false;
  if (query.createdAfter !== undefined && row.createdAt <= query.createdAfter) return false;
  return query.createdBefore === undefined || row.createdAt < query.createdBefore;
}

/** What a search looks at. */
function textsOf({ id, workflow, key, tags }: RunRow): string[] {
  return [id, workflow, ...(key === null ? [] : [key]), ...tags];
}

/** Workflows as they are asked for, or else by name; versions by line and patch, runs by age. */
export function listUnclaimed(tables: Tables, { workflows, limit }: UnclaimedQuery): UnclaimedRow[] {
  const free = [...tables.runs.values()].filter((run) => {
    return run.row.owner === null && run.row.state !== "parked" && !isOver(run);
  });
  const groups = new Map<string, Map<string, string[]>>();
  for (const { row } of free.sort(inCreationOrder)) {
    const versions = groups.get(row.workflow) ?? new Map<string, string[]>();
    const runs = versions.get(row.version) ?? [];
    if (runs.length < limit) runs.push(row.id);
    groups.set(row.workflow, versions.set(row.version, runs));
  }
  const meant = workflows ?? [...groups.keys()].sort(byText);
  return [...new Set(meant)].flatMap((workflow) =>
    [...(groups.get(workflow) ?? [])]
      .sort(([a], [b]) => byLine(a, b))
      .map(([version, runs]) => ({ workflow, version, runs })),
  );
}

function byLine(a: string, b: string): number {
  const [one, other] = [versionLine(a), versionLine(b)];
  return byText(one.line, other.line) || one.patch - other.patch;
}

export function readJournal(
  tables: Tables,
  id: string,
  from = 0,
  limit: number = Number.POSITIVE_INFINITY,
): StoredEntry[] {
  const journal = tables.runs.get(id)?.journal ?? [];
  return journal.slice(from, from + limit).map(copyEntry);
}

export function listWaits(tables: Tables, { run, kind, name, after, limit }: WaitQuery): WaitRow[] {
  return runsFrom(tables, after?.run)
    .filter(({ row }) => run === undefined || row.id === run)
    .flatMap(({ waits }) => [...waits.values()].sort((a, b) => byText(a.key, b.key)))
    .filter((wait) => kind === undefined || wait.kind === kind)
    .filter((wait) => name === undefined || wait.name === name)
    .filter((wait) => wait.run !== after?.run || byText(wait.key, after.key) > 0)
    .slice(0, limit);
}

/** In order of creation, beginning with this one; none if it is gone. */
function runsFrom(tables: Tables, first: string | undefined): MemoryRun[] {
  const runs = [...tables.runs.values()].sort(inCreationOrder);
  if (first === undefined) return runs;
  const index = runs.findIndex(({ row }) => row.id === first);
  return index < 0 ? [] : runs.slice(index);
}

export function listState(tables: Tables, id: string): StateRow[] {
  return [...(tables.runs.get(id)?.state.values() ?? [])]
    .map(({ key, data }) => ({ key, data: copyData(data) }))
    .sort((a, b) => byText(a.key, b.key));
}

export function listCounters(tables: Tables, prefix: string): CounterRow[] {
  return [...tables.counters]
    .filter(([key]) => key.startsWith(prefix))
    .map(([key, value]) => ({ key, value }))
    .sort((a, b) => byText(a.key, b.key));
}

export function purge(tables: Tables, request: PurgeRequest, now: number): number {
  const gone = runsToPurge(tables, request);
  if (request.dryRun === true) return gone.length;
  forgetStarts(tables, now);
  for (const { row } of gone) {
    tables.runs.delete(row.id);
    tables.streams.delete(row.id);
    for (const { key } of listCounters(tables, countersOf(row.id))) tables.counters.delete(key);
    for (const keys of tables.keys.values()) {
      for (const [key, holder] of keys) if (holder.run === row.id) keys.delete(key);
    }
  }
  return gone.length;
}

/** Those that ended first, without those that are held. */
export function runsToPurge(tables: Tables, request: PurgeRequest): MemoryRun[] {
  return [...tables.runs.values()]
    .filter(({ row }) => !tables.operators.holds.has(row.id))
    .filter((run) => isPurged(run, request))
    .sort((a, b) => (a.row.endedAt as number) - (b.row.endedAt as number) || inCreationOrder(a, b))
    .slice(0, request.limit);
}

function isPurged(run: MemoryRun, { succeededBefore, failedBefore, workflow, except }: PurgeRequest): boolean {
  const { endedAt, state } = run.row;
  if (workflow !== undefined && run.row.workflow !== workflow) return false;
  if (except?.includes(run.row.workflow)) return false;
  if (endedAt === null || !isOver(run)) return false;
  return endedAt < (state === "succeeded" ? succeededBefore : failedBefore);
}
