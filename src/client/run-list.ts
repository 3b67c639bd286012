import { PawlError } from "../base/errors.ts";
import { LIMITS } from "../core/limits.ts";
import { isOwnWorkflow } from "../core/own-workflows.ts";
import type { RunRow, Store, RunQuery as StoreQuery } from "../core/store.ts";
import { type PublicStatus, publicStatus, RUN_STATES, type RunState } from "../core/transition.ts";
import { type RunSummary, summaryOf } from "./run.ts";

export interface RunQuery {
  readonly workflow?: string;
  readonly status?: PublicStatus;
  readonly state?: RunState;
  readonly tag?: string;
  readonly parent?: string;
  readonly after?: Date;
  readonly before?: Date;
  readonly cursor?: string;
  readonly limit?: number;
}

export interface Page<T> {
  readonly runs: readonly T[];
  /** Pass it to the next call; `null` at the end. */
  readonly cursor: string | null;
}

/** A page of the runs that fit. */
export async function listRuns(store: Store, query: RunQuery): Promise<Page<RunSummary>> {
  const limit = Math.min(positive("limit", query.limit ?? LIMITS.listPage), LIMITS.listPageMax);
  const states = statesOf(query);
  const filter = {
    ...(query.workflow === undefined ? {} : { workflow: query.workflow }),
    ...(states === null ? {} : { states }),
    ...(query.tag === undefined ? {} : { tag: query.tag }),
    ...(query.parent === undefined ? {} : { parent: query.parent }),
    ...(query.after === undefined ? {} : { createdAfter: query.after.getTime() }),
    ...(query.before === undefined ? {} : { createdBefore: query.before.getTime() }),
  };
  const runs = await pageOf(store, filter, query.cursor, limit + 1);
  const shown = runs.slice(0, limit).map(summaryOf);
  return { runs: shown, cursor: runs.length > limit ? (shown.at(-1)?.id ?? null) : null };
}

/** Runs, newest first, without those of the engine's own, unless they are asked for. */
async function pageOf(
  store: Store,
  filter: Omit<StoreQuery, "before" | "limit">,
  cursor: string | undefined,
  limit: number,
): Promise<RunRow[]> {
  const found: RunRow[] = [];
  for (let before = cursor; found.length < limit; ) {
    const rows = await store.runs({ ...filter, limit, ...(before === undefined ? {} : { before }) });
    found.push(...rows.filter(({ workflow }) => !isOwnWorkflow(workflow) || filter.workflow === workflow));
    before = rows.at(-1)?.id;
    if (rows.length < limit) break;
  }
  return found.slice(0, limit);
}

function statesOf({ status, state }: RunQuery): RunState[] | null {
  if (state !== undefined) return [state];
  return status === undefined ? null : RUN_STATES.filter((one) => publicStatus(one) === status);
}

export function positive(what: string, value: number): number {
  if (Number.isFinite(value) && value >= 1) return Math.floor(value);
  throw new PawlError("invalid_argument", `${what} is ${value}. Give a number of at least 1.`, {
    fields: { [what]: value },
  });
}
