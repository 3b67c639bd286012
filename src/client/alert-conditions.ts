// What the store says that somebody should look at
// Conditions that can be read off it at any time, and so survive whoever has seen them: parked runs, approvals, runs that nobody can take.
// Everything that is read is bounded; where the bound is reached, nothing is taken to be over.
import { formatMs } from "../base/duration.ts";
import type { Codec } from "../base/envelope.ts";
import { type AlertKind, type AlertRules, type Condition, isOn } from "../core/alert.ts";
import type { ApprovalRequested } from "../core/approval-request.ts";
import type { Parked, ParkReason } from "../core/journal.ts";
import { LIMITS } from "../core/limits.ts";
import { isOwnWorkflow } from "../core/own-workflows.ts";
import type { Store, UnclaimedRow, WaitKind, WaitRow } from "../core/store.ts";
import { openEntry } from "../core/values.ts";
import { isHandled } from "../stores/version-line.ts";

/** Kinds that are read off the store, and so are over when they are not found any more. */
export const LOOKED_FOR: ReadonlySet<AlertKind> = new Set<AlertKind>([
  "stuck_approval",
  "replay_failure",
  "stranded_run",
  "parked_run",
  "budget_exceeded",
]);

export interface Found {
  readonly conditions: readonly Condition[];
  /** Kinds of which all that is there was looked at. */
  readonly complete: ReadonlySet<AlertKind>;
  /** Why something could not be read, such as a damaged row: it hides what is read with it, and nothing else. */
  readonly faults: readonly unknown[];
}

const OF_REASON: Readonly<Partial<Record<ParkReason, AlertKind>>> = {
  replay_drift: "replay_failure",
  replay_stalled: "replay_failure",
  corrupted_journal: "replay_failure",
  foreign_await: "replay_failure",
  definition_changed: "replay_failure",
  version_mismatch: "stranded_run",
  migration_pending: "stranded_run",
  budget_exceeded: "budget_exceeded",
  poisoned: "parked_run",
  unknown_outcome: "parked_run",
  commit_refused: "parked_run",
  secret_missing: "parked_run",
  key_missing: "parked_run",
  newer_journal: "parked_run",
};

/** `null` for a park that is part of the business, such as a phase that waits for its gate. */
export function parkCondition(wait: Pick<WaitRow, "run" | "workflow" | "name" | "detail">): Condition | null {
  const { run, workflow, name: reason } = wait;
  const kind = OF_REASON[reason as ParkReason];
  if (kind === undefined || isOwnWorkflow(workflow)) return null;
  const parked = readDetail(wait.detail) as Partial<Parked> | null;
  return {
    kind,
    subject: run,
    level: 0,
    workflow,
    runs: [run],
    summary: parked?.message ?? `Run ${run} is parked: ${reason}`,
    detail: { reason, ...parked?.detail },
  };
}

type Times = Pick<ApprovalRequested, "at" | "expiresAt" | "name"> & { readonly levels: readonly number[] };

export class Conditions {
  readonly #store: Store;
  readonly #codec: Codec;
  readonly #rules: AlertRules;
  /** Of approvals that were looked at before: what was asked for does not change. */
  readonly #times = new Map<string, Times>();

  constructor(store: Store, codec: Codec, rules: AlertRules) {
    this.#store = store;
    this.#codec = codec;
    this.#rules = rules;
  }

  async find(): Promise<Found> {
    const { stuckApproval, strandedRun } = this.#rules;
    const faults: unknown[] = [];
    const read = async <T extends { readonly isAll: boolean }>(part: () => Promise<T>, nothing: T): Promise<T> => {
      try {
        return await part();
      } catch (error) {
        faults.push(error);
        return { ...nothing, isAll: false };
      }
    };
    const parks = await read(() => this.#waits("decision"), NOTHING);
    const approvals = stuckApproval === null ? NOTHING : await read(() => this.#waits("approval"), NOTHING);
    const stranded =
      strandedRun === null ? NO_RUNS : await read(() => this.#stranded(strandedRun.afterMs, faults), NO_RUNS);
    const conditions = [
      ...parks.waits.flatMap((wait) => parkCondition(wait) ?? []),
      ...(await this.#stuck(approvals.waits, faults)),
      ...stranded.conditions,
    ];
    const complete = [...LOOKED_FOR].filter((kind) => {
      if (kind === "stuck_approval") return approvals.isAll && faults.length === 0;
      return parks.isAll && (kind !== "stranded_run" || (stranded.isAll && faults.length === 0));
    });
    return {
      conditions: conditions.filter(({ kind }) => isOn(this.#rules, kind)),
      complete: new Set(complete),
      faults,
    };
  }

  async #waits(kind: WaitKind): Promise<{ readonly waits: readonly WaitRow[]; readonly isAll: boolean }> {
    const waits = await this.#store.waits({ kind, limit: LIMITS.alertLook });
    return { waits, isAll: waits.length < LIMITS.alertLook };
  }

  // Approvals

  async #stuck(waits: readonly WaitRow[], faults: unknown[]): Promise<Condition[]> {
    const now = this.#store.clock.now();
    const found: Condition[] = [];
    for (const wait of waits) {
      const times = await this.#timesOf(wait).catch((error: unknown) => void faults.push(error));
      if (times == null) continue;
      const reached = this.#reached(times, now);
      if (reached > 0) found.push(stuckCondition(wait, times, reached - 1, now));
    }
    return found;
  }

  /** How many of the times have come at which nobody should still be waiting. */
  #reached({ at, levels, expiresAt }: Times, now: number): number {
    const after = this.#rules.stuckApproval?.afterMs ?? [];
    return new Set([...after.map((ms) => at + ms), ...levels, expiresAt].filter((time) => time <= now)).size;
  }

  async #timesOf({ run, name, detail }: WaitRow): Promise<Times | null> {
    const known = this.#times.get(name);
    if (known !== undefined) return known;
    const seq = (readDetail(detail) as { seq?: unknown } | null)?.seq;
    if (typeof seq !== "number") return null;
    const [entry] = await this.#store.journal(run, { from: seq, limit: 1 });
    if (entry?.type !== "approval.requested") return null;
    const request = openEntry(this.#codec, run, entry).payload as ApprovalRequested;
    const levels = request.levels.map(({ due }) => due);
    const times = { at: request.at, expiresAt: request.expiresAt, name: request.name, levels };
    if (this.#times.size >= LIMITS.alertLook) this.#times.clear();
    this.#times.set(name, times);
    return times;
  }

  // Runs that nobody can take

  /** Asked for by version: however many others there are, those that nobody can take are found. */
  async #stranded(afterMs: number, faults: unknown[]): Promise<Runs> {
    const rows = await this.#store.unclaimed({ limit: STRANDED_RUNS });
    const live = (await this.#store.workers()).filter(({ leaseLeftMs }) => leaseLeftMs > 0);
    const isTaken = ({ workflow, version }: UnclaimedRow) =>
      isOwnWorkflow(workflow) || live.some(({ handles }) => isHandled(handles, workflow, version));
    const conditions: Condition[] = [];
    for (const row of rows.filter((one) => !isTaken(one))) {
      const runs = await this.#oldOf(row, this.#store.clock.now() - afterMs, faults);
      if (runs.length > 0) conditions.push(strandedCondition(row, runs));
    }
    return { conditions, isAll: true };
  }

  /** Those that have been there, or ready, since then. */
  async #oldOf({ runs }: UnclaimedRow, since: number, faults: unknown[]): Promise<string[]> {
    const old: string[] = [];
    for (const id of runs) {
      const row = await this.#store.run(id).catch((error: unknown) => void faults.push(error));
      if (row != null && Math.max(row.createdAt, row.readyAt ?? row.createdAt) <= since) old.push(id);
    }
    return old;
  }
}

interface Runs {
  readonly conditions: readonly Condition[];
  readonly isAll: boolean;
}

/** Of one version, the oldest: more would tell nobody more. */
const STRANDED_RUNS = 100;
const NOTHING = { waits: [], isAll: true } as const;
const NO_RUNS: Runs = { conditions: [], isAll: true };

function stuckCondition(wait: WaitRow, { at, name, expiresAt }: Times, level: number, now: number): Condition {
  const { run, workflow, name: approval } = wait;
  const isExpired = expiresAt <= now ? ", past its expiry" : "";
  return {
    kind: "stuck_approval",
    subject: approval,
    level,
    workflow,
    runs: [run],
    summary: `Approval "${name}" of run ${run} has waited ${formatMs(now - at)}${isExpired}`,
    detail: { approval, name, waitedMs: now - at, since: at },
  };
}

function strandedCondition({ workflow, version }: UnclaimedRow, runs: readonly string[]): Condition {
  const count = runs.length < STRANDED_RUNS ? String(runs.length) : `${STRANDED_RUNS} or more`;
  return {
    kind: "stranded_run",
    subject: `${workflow}@${version}`,
    level: 0,
    workflow,
    runs,
    summary: `${count} runs of ${workflow} ${version} wait, and no live worker can take them`,
    detail: { version, runs: runs.length },
  };
}

function readDetail(detail: string | null): unknown {
  try {
    return JSON.parse(detail ?? "null");
  } catch {
    return null;
  }
}
