// Which runs are meant: what lists, counts and retention ask of a store.
import type { RunRow } from "./store.ts";
import type { RunState } from "./transition.ts";

export interface RunReader {
  run(id: string): Promise<RunRow | null>;
  runs(query: RunQuery): Promise<RunRow[]>;
  /** How many runs fit, by state: each is counted up to `bound`. */
  counts(filter: RunFilter, bound: number): Promise<RunCounts>;
}

export interface RunFilter {
  readonly workflow?: string;
  /** None of these workflows. */
  readonly except?: readonly string[];
  readonly states?: readonly RunState[];
  /** Any of these: a workflow, in some states. */
  readonly among?: readonly { readonly workflow: string; readonly states: readonly RunState[] }[];
  readonly tag?: string;
  readonly parent?: string;
  /** Only those that hold this slot. */
  readonly slot?: string;
  readonly createdAfter?: number;
  readonly createdBefore?: number;
  /** What the id, the workflow, the key or one of the tags begins with. */
  readonly search?: string;
}

export interface RunQuery extends RunFilter {
  /** Runs created before the run at this cursor, newest first. */
  readonly before?: string;
  readonly limit: number;
}

export interface RunCounts {
  readonly counts: Readonly<Record<RunState, number>>;
  /** Some state has more runs than were counted. */
  readonly atLeast: boolean;
}

export interface PurgeRequest {
  readonly succeededBefore: number;
  readonly failedBefore: number;
  readonly limit: number;
  /** Deletes nothing, and tells how many it would have. */
  readonly dryRun?: boolean;
  /** Only runs of this workflow. */
  readonly workflow?: string;
  /** None of these workflows. */
  readonly except?: readonly string[];
}
