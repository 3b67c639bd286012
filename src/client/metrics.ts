// Metrics, read from the store
// Rows of the time asked for, and of each run what its journal comes to. What has ended never changes, and is read once.
import { hasCode, PawlError } from "../base/errors.ts";
import { LIMITS } from "../core/limits.ts";
import { isOwnWorkflow } from "../core/own-workflows.ts";
import type { RunQuery } from "../core/run-query.ts";
import type { RunRow, Store } from "../core/store.ts";
import { isTerminal, RUN_STATES, type RunState } from "../core/transition.ts";
import { openEntry } from "../core/values.ts";
import {
  type DuplicateCount,
  type KnownIncident,
  type Metrics,
  qualityOf,
  type StoreMetrics,
} from "../observe/metrics.ts";
import { factsOf, type RunFacts } from "../observe/run-facts.ts";
import type { Observation } from "./observation.ts";
import { positive } from "./run-list.ts";

export interface MetricsQuery {
  /** Only runs that were created since then. Default: 7 days ago. */
  readonly since?: Date;
  /** Only runs of this workflow. */
  readonly workflow?: string;
  /** How many runs are looked at, the newest first. Default 10,000. */
  readonly maxRuns?: number;
  /** What went wrong in production, for `incidentRecurrence`. Default: nothing. */
  readonly incidents?: readonly KnownIncident[];
}

const WEEK_MS = 604_800_000;
const DEFAULT_MAX_RUNS = 10_000;
/** Facts of runs that have ended, kept in memory: some megabytes. */
const KEPT_FACTS = 20_000;
const AT_ONCE = 8;
const UNFINISHED = RUN_STATES.filter((state) => !isTerminal(state));
const WAIT_KINDS = ["timer", "signal", "child", "retry", "approval", "callback", "decision"] as const;

export async function readMetrics(observation: Observation, query: MetricsQuery): Promise<Metrics> {
  const { store } = observation.ports;
  const until = store.clock.now();
  const since = sinceOf(query, until);
  const maxRuns = positive("maxRuns", query.maxRuns ?? DEFAULT_MAX_RUNS);
  const filter = { createdAfter: since, ...(query.workflow !== undefined && { workflow: query.workflow }) };
  const { rows, isComplete } = await newest(store, filter, maxRuns);
  const facts = await factsOfAll(observation, rows);
  const duplicates = await duplicatesSince(observation, since, query.workflow);
  return {
    since: new Date(since),
    until: new Date(until),
    workflow: query.workflow ?? null,
    runs: rows.length,
    isComplete,
    ...qualityOf(facts, duplicates, query.incidents ?? []),
    store: await storeMetrics(store, rows, maxRuns),
    process: observation.counters.value,
  };
}

function sinceOf({ since }: MetricsQuery, until: number): number {
  if (since === undefined) return until - WEEK_MS;
  if (since instanceof Date && !Number.isNaN(since.getTime())) return since.getTime();
  throw new PawlError("invalid_argument", "`since` is no valid Date. Give the time from which on runs count.", {
    fields: { field: "since" },
  });
}

/** Without the engine's own. */
async function newest(
  store: Store,
  filter: Omit<RunQuery, "limit" | "before">,
  maxRuns: number,
): Promise<{ readonly rows: readonly RunRow[]; readonly isComplete: boolean }> {
  const rows: RunRow[] = [];
  const limit = LIMITS.listPageMax;
  for (let before: string | undefined; ; ) {
    const page = await store.runs({ ...filter, limit, ...(before !== undefined && { before }) });
    rows.push(...page.filter(({ workflow }) => !isOwnWorkflow(workflow)));
    if (rows.length > maxRuns) return { rows: rows.slice(0, maxRuns), isComplete: false };
    if (page.length < limit) return { rows, isComplete: true };
    before = page.at(-1)?.id;
  }
}

/** What the newest runs have come to, as many as one look for alerts goes through, without those that had ended by then. */
export async function recentFacts(observation: Observation, endedBy: number): Promise<RunFacts[]> {
  const { rows } = await newest(observation.ports.store, {}, LIMITS.alertLook);
  let entries = 0;
  const some = rows
    .filter(({ endedAt }) => endedAt === null || endedAt >= endedBy)
    .filter(({ head }) => {
      entries += head;
      return entries <= LIMITS.lookBackEntries;
    });
  return factsOfAll(observation, some);
}

async function factsOfAll(observation: Observation, rows: readonly RunRow[]): Promise<RunFacts[]> {
  const facts: (RunFacts | null)[] = [];
  for (let from = 0; from < rows.length; from += AT_ONCE)
    facts.push(...(await Promise.all(rows.slice(from, from + AT_ONCE).map((row) => factsOfRun(observation, row)))));
  return facts.filter((one) => one !== null);
}

async function factsOfRun({ ports: { store, codec }, facts }: Observation, row: RunRow): Promise<RunFacts | null> {
  const known = facts.get(row.id);
  if (known !== undefined) return known;
  const entries = await readable(async () =>
    (await store.journal(row.id)).map((entry) => openEntry(codec, row.id, entry)),
  );
  // Deleted since it was listed.
  if (entries?.length === 0) return null;
  const found = factsOf(row, entries ?? []);
  if (!isTerminal(row.state)) return found;
  if (facts.size >= KEPT_FACTS) facts.delete(facts.keys().next().value as string);
  facts.set(row.id, found);
  return found;
}

/** `null` for a damaged journal: it must not keep the others from being counted, and its row still counts. */
async function readable<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (hasCode(error, "storage_unavailable")) throw error;
    return null;
  }
}

async function duplicatesSince(
  { reader }: Observation,
  since: number,
  workflow: string | undefined,
): Promise<DuplicateCount> {
  const { book } = await reader.read();
  const days = book.duplicates.filter(
    (one) => one.day + DAY_MS > since && (workflow === undefined || one.workflow === workflow),
  );
  return { count: days.reduce((sum, { count }) => sum + count, 0), runs: days.flatMap(({ runs }) => runs) };
}

const DAY_MS = 86_400_000;

async function storeMetrics(store: Store, rows: readonly RunRow[], maxRuns: number): Promise<StoreMetrics> {
  const { rows: open, isComplete } = await newest(store, { states: UNFINISHED }, maxRuns);
  const runsByState: Partial<Record<RunState, number>> = {};
  for (const { state } of [...open, ...rows.filter((row) => isTerminal(row.state))])
    runsByState[state] = (runsByState[state] ?? 0) + 1;
  const now = store.clock.now();
  const waiting = open.filter(({ owner, readyAt }) => owner === null && readyAt !== null && readyAt <= now);
  const ages = waiting.map(({ readyAt }) => now - (readyAt ?? now));
  const waits: Record<string, number> = {};
  let isAll = isComplete;
  for (const kind of WAIT_KINDS) {
    const found = await store.waits({ kind, limit: LIMITS.alertLook });
    waits[kind] = found.filter(({ workflow }) => !isOwnWorkflow(workflow)).length;
    isAll &&= found.length < LIMITS.alertLook;
  }
  return { runsByState, waits, queueAgeMs: ages.reduce((oldest, age) => Math.max(oldest, age), 0), isComplete: isAll };
}
