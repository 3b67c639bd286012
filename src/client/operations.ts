import { type Duration, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import type { AuditRecord } from "../core/audit.ts";
import type { Log } from "../core/context.ts";
import { assertHold, type HoldRow } from "../core/holds.ts";
import { DEFAULTS, LIMITS } from "../core/limits.ts";
import { endedBefore, type KeptFor, purgesFor } from "../core/retention.ts";
import type { PurgeRequest } from "../core/run-query.ts";
import type { Store } from "../core/store.ts";
import { readFacts } from "../core/workflow-facts.ts";
import { type AuditCheck, type AuditedBy, checkAudit, recordOf } from "./audit.ts";
import { audited, type Deed } from "./audited.ts";
import { type BulkOutcome, type BulkPorts, type BulkRequest, bulk } from "./bulk.ts";
import { runNotFound } from "./run.ts";
import { countRuns, positive, type RunSelection, type RunTotals } from "./run-list.ts";

/** A run that retention leaves alone. */
export interface Hold {
  readonly run: string;
  readonly by: string;
  readonly reason: string;
  readonly at: Date;
}

export interface PurgeOptions extends AuditedBy {
  /** Only runs of this workflow. */
  readonly workflow?: string;
  /** How long ago succeeded runs must have ended. Default 30 days. */
  readonly succeeded?: Duration;
  /** How long ago failed and cancelled runs must have ended. Default 90 days. */
  readonly failed?: Duration;
  /** Deletes nothing, and tells how many it would have. */
  readonly dryRun?: boolean;
}

export interface AuditPage {
  readonly records: readonly AuditRecord[];
  /** Pass it to the next call as `after`; `null` at the end. */
  readonly cursor: number | null;
}

export interface OperationPorts extends BulkPorts {
  readonly log: Log;
  assertOpen(): void;
}

const COUNT_BOUND = 10_000;
const PURGE_LIMIT = 500;
const DRY_LIMIT = 1_000_000;

/** What operators do with many runs, or with the store: count, hold, purge, cancel and retry, and the log of who did what. */
export class Operations {
  readonly #ports: OperationPorts;

  constructor(ports: OperationPorts) {
    this.#ports = ports;
  }

  get #store(): Store {
    this.#ports.assertOpen();
    return this.#ports.store;
  }

  /** How many runs fit, by status; each state is counted up to a bound, by default 10,000. */
  count(selection: RunSelection = {}, { bound = COUNT_BOUND }: { readonly bound?: number } = {}): Promise<RunTotals> {
    return countRuns(this.#store, selection, bound);
  }

  /** Cancels or retries every run that fits. If it is cut off, give it again: each run is acted on once. */
  async bulk(request: BulkRequest): Promise<BulkOutcome> {
    assertBy(request.by);
    this.#ports.assertOpen();
    return bulk(this.#ports, request);
  }

  /** Keeps a run from retention, with the reason. One that is held already stays held as it is. */
  async hold(run: string, { reason, ...by }: AuditedBy & { readonly reason: string }): Promise<Hold> {
    assertName("run id", run);
    assertBy(by.by);
    assertHold({ who: by.by, why: reason });
    const store = this.#store;
    if ((await store.run(run)) === null) throw runNotFound(run);
    return this.#recorded(by, { action: "run.hold", subject: run, detail: { reason } }, async () => {
      const held = await store.hold(run, { who: by.by, why: reason });
      if (held === null) throw runNotFound(run);
      return holdOf(held);
    });
  }

  /** Ends a hold; `null` if there was none. */
  async release(run: string, by: AuditedBy): Promise<Hold | null> {
    assertName("run id", run);
    assertBy(by.by);
    const store = this.#store;
    const [held] = await store.holds({ run, limit: 1 });
    if (held === undefined) return null;
    const detail = { held: held.who, reason: held.why };
    return this.#recorded(by, { action: "run.release", subject: run, detail }, async () => {
      const released = await store.releaseHold(run);
      return released === null ? null : holdOf(released);
    });
  }

  /** Does what the audit log has first (Q20). */
  #recorded<T>({ by, from }: AuditedBy, what: Pick<Deed, "action" | "subject" | "detail">, work: () => Promise<T>) {
    const deed: Deed = { ...what, who: by, from: from ?? null, payload: null };
    return audited(this.#store, deed, work, (message, error) => this.#ports.log.error(message, { error }));
  }

  /** Runs that are held, by their ids. */
  async holds(
    query: { readonly run?: string; readonly after?: string; readonly limit?: number } = {},
  ): Promise<Hold[]> {
    const { limit = LIMITS.listPage, ...which } = query;
    const rows = await this.#store.holds({ ...which, limit: Math.min(positive("limit", limit), LIMITS.listPageMax) });
    return rows.map(holdOf);
  }

  /** Deletes finished runs that are old enough and that nobody holds; tells how many. Workflows with a retention of their own keep to that. */
  async purge(options: PurgeOptions): Promise<number> {
    assertBy(options.by);
    const store = this.#store;
    const requests = await purgesOf(store, options);
    if (options.dryRun === true) {
      const counts = requests.map((request) => store.purge({ ...request, limit: DRY_LIMIT, dryRun: true }));
      return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
    }
    const record = recordOf(store, options, "runs.purge", options.workflow ?? null);
    await record("begun", { requests });
    let purged = 0;
    for (const request of requests)
      for (let gone = PURGE_LIMIT; gone === PURGE_LIMIT; purged += gone)
        gone = await store.purge({ ...request, limit: PURGE_LIMIT });
    await record("done", { requests, purged });
    return purged;
  }

  /** The audit log, oldest first, behind a number. */
  async audit(query: { readonly after?: number; readonly limit?: number } = {}): Promise<AuditPage> {
    const { after = 0, limit = LIMITS.listPage } = query;
    const size = Math.min(positive("limit", limit), LIMITS.listPageMax);
    const records = await this.#store.audits({ after, limit: size });
    return { records, cursor: records.length < size ? null : (records.at(-1)?.n ?? null) };
  }

  /** Whether the audit log is as it was written, from its first record to its last. */
  checkAudit(): Promise<AuditCheck> {
    return checkAudit(this.#store);
  }
}

/** Workflows that say how long their runs are kept are purged by that, unless one of them is named with other times. */
async function purgesOf(store: Store, options: PurgeOptions): Promise<Omit<PurgeRequest, "limit">[]> {
  const facts = readFacts(await store.workflows());
  const now = store.clock.now();
  const { workflow } = options;
  const own = workflow === undefined ? null : (facts.get(workflow)?.retention ?? null);
  const usual: KeptFor = {
    ...DEFAULTS.retention,
    ...(own !== null && own !== false && own),
    ...(options.succeeded !== undefined && { succeededMs: toMs(options.succeeded, "succeeded") }),
    ...(options.failed !== undefined && { failedMs: toMs(options.failed, "failed") }),
  };
  if (workflow === undefined) return purgesFor(usual, facts, now);
  const isGiven = options.succeeded !== undefined || options.failed !== undefined;
  return own === false && !isGiven ? [] : [{ ...endedBefore(usual, now), workflow }];
}

function holdOf({ run, who, why, at }: HoldRow): Hold {
  return { run, by: who, reason: why, at: new Date(at) };
}

function assertBy(by: unknown): void {
  if (typeof by === "string" && by.trim() !== "") return;
  throw new PawlError(
    "invalid_argument",
    `\`by\` is ${JSON.stringify(by)}. Say who does this, by a name or an address: the audit log keeps it.`,
    { fields: { field: "by" } },
  );
}
