import { PawlError } from "../base/errors.ts";
import { LIMITS } from "../core/limits.ts";
import { NOTIFY_WORKFLOW } from "../core/notification.ts";
import { OWNED_STATES, ownerIn } from "../core/owners.ts";
import type { RunFilter } from "../core/run-query.ts";
import { SCHEDULE_WORKFLOW } from "../core/slot-run.ts";
import type { Store } from "../core/store.ts";
import { type PublicStatus, publicStatus, RUN_STATES, type RunState } from "../core/transition.ts";
import { type Facts, readFacts } from "../core/workflow-facts.ts";
import { type RunSummary, summaryOf } from "./run.ts";

/** Which runs: what fits all that is given. */
export interface RunSelection {
  readonly workflow?: string;
  readonly status?: PublicStatus;
  readonly state?: RunState;
  readonly tag?: string;
  readonly parent?: string;
  /** Who has to see to them now, as their workflows say. */
  readonly owner?: string;
  /** What the id, the workflow, the key or a tag begins with. */
  readonly search?: string;
  readonly after?: Date;
  readonly before?: Date;
}

export interface RunQuery extends RunSelection {
  readonly cursor?: string;
  readonly limit?: number;
}

export interface Page<T> {
  readonly runs: readonly T[];
  /** Pass it to the next call; `null` at the end. */
  readonly cursor: string | null;
}

/** How many runs there are, as people ask for them: parked ones by themselves. */
export interface RunTotals {
  readonly counts: Readonly<Record<PublicStatus | "parked", number>>;
  /** Some of them are more: counting ended at its bound. */
  readonly atLeast: boolean;
}

/** A page of the runs that fit, newest first. */
export async function listRuns(store: Store, query: RunQuery): Promise<Page<RunSummary>> {
  const limit = Math.min(positive("limit", query.limit ?? LIMITS.listPage), LIMITS.listPageMax);
  const facts = readFacts(await store.workflows());
  const before = query.cursor === undefined ? {} : { before: query.cursor };
  const runs = await store.runs({ ...filterOf(query, facts), ...before, limit: limit + 1 });
  const shown = runs.slice(0, limit).map((row) => summaryOf(row, facts));
  return { runs: shown, cursor: runs.length > limit ? (shown.at(-1)?.id ?? null) : null };
}

/** Counts the runs that fit, up to a bound for each state. */
export async function countRuns(store: Store, selection: RunSelection, bound: number): Promise<RunTotals> {
  const facts = readFacts(await store.workflows());
  const { counts, atLeast } = await store.counts(filterOf(selection, facts), positive("bound", bound));
  const totals = { running: 0, waiting: 0, parked: 0, succeeded: 0, failed: 0, cancelled: 0 };
  for (const state of RUN_STATES) totals[state === "parked" ? "parked" : publicStatus(state)] += counts[state];
  return { counts: totals, atLeast };
}

const OWN: readonly string[] = [SCHEDULE_WORKFLOW, NOTIFY_WORKFLOW];

/** Without the runs that keep schedules or send notifications, unless they are asked for. */
export function filterOf(selection: RunSelection, facts: ReadonlyMap<string, Facts>): RunFilter {
  const { workflow, tag, parent, search, owner, after, before } = selection;
  const states = statesOf(selection);
  const except = OWN.filter((own) => own !== workflow);
  return {
    except,
    ...(workflow !== undefined && { workflow }),
    ...(states !== null && { states }),
    ...(tag !== undefined && { tag }),
    ...(parent !== undefined && { parent }),
    ...(search !== undefined && { search }),
    ...(owner !== undefined && { among: ownedBy(owner, facts) }),
    ...(after !== undefined && { createdAfter: after.getTime() }),
    ...(before !== undefined && { createdBefore: before.getTime() }),
  };
}

function ownedBy(owner: string, facts: ReadonlyMap<string, Facts>): NonNullable<RunFilter["among"]> {
  return [...facts].map(([workflow, { owners }]) => ({
    workflow,
    states: OWNED_STATES.filter((state) => ownerIn(owners, state) === owner),
  }));
}

function statesOf({ status, state }: RunSelection): RunState[] | null {
  if (state !== undefined) return [state];
  return status === undefined ? null : RUN_STATES.filter((one) => publicStatus(one) === status);
}

export function positive(what: string, value: number): number {
  if (Number.isFinite(value) && value >= 1) return Math.floor(value);
  throw new PawlError("invalid_argument", `${what} is ${value}. Give a number of at least 1.`, {
    fields: { [what]: value },
  });
}
