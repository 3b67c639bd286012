// Bulk
// Cancels or retries every run that fits, page by page. What it does to one run is durable by itself and has an effect once, so a bulk that was cut
// off is simply given again.
//
//   BK1. A run is asked to stop once: a second cancel changes nothing. A run is retried once by all bulks together, and not at all where somebody has
//        retried it by hand.
//   BK2. One run that cannot be acted on is told of, and keeps nobody else from its turn.
//   BK3. The audit log has a record before the first run is touched and one after the last. A bulk that was cut off has the first alone.
import { cancelText } from "../base/cancel-text.ts";
import { hasCode, messageOf, PawlError } from "../base/errors.ts";
import { assertNotAlerts } from "../core/own-workflows.ts";
import type { RunFilter } from "../core/run-query.ts";
import type { Delivery, Message, RunRow, Store } from "../core/store.ts";
import { isTerminal, RUN_STATES, type RunState } from "../core/transition.ts";
import { readFacts } from "../core/workflow-facts.ts";
import { type AuditedBy, recordOf } from "./audit.ts";
import { filterOf, type RunSelection } from "./run-list.ts";

export interface BulkRequest extends AuditedBy {
  /** What is done with each of them. */
  readonly action: "cancel" | "retry";
  /** Which runs: of those that fit, the ones that can still be cancelled, or that can be retried. */
  readonly filter: RunSelection;
  /** Only tells how many there are. */
  readonly dryRun?: boolean;
  /** Why, for the journals of cancelled runs and the audit log. */
  readonly reason?: string;
  /** Cancelled runs undo what they have done, as far as they say how. Default false. */
  readonly compensate?: boolean;
  /** Called after each page of runs. */
  readonly onProgress?: (sofar: BulkOutcome) => void;
  /** Ends it after the page that is under way. */
  readonly signal?: AbortSignal;
}

export interface BulkOutcome {
  /** Runs that fit. */
  readonly matched: number;
  /** Of these, cancelled or retried by this call. */
  readonly done: number;
  /** Of these, cancelled or retried before, or ended meanwhile. */
  readonly already: number;
  readonly failed: readonly { readonly id: string; readonly error: string }[];
  readonly dryRun: boolean;
}

export interface BulkPorts {
  readonly store: Store;
  newId(): string;
  /** `null`: it was retried before. */
  retryOnce(run: string): Promise<string | null>;
  /** Runs may have something to do. */
  sent(): void;
}

const PAGE = 100;
const AT_ONCE = 10;
const MOST_FAILURES = 1000;

export async function bulk(ports: BulkPorts, request: BulkRequest): Promise<BulkOutcome> {
  const { action, dryRun = false } = request;
  if (action !== "cancel" && action !== "retry") throw noAction(action);
  const filter = await filterFor(ports.store, request);
  const total = new Total(dryRun);
  if (dryRun) {
    for await (const rows of pagesOf(ports.store, filter)) total.matched += rows.length;
    return total.outcome;
  }
  const record = recordOf(ports.store, request, `runs.${action}`, null);
  const what = { filter: request.filter, ...(request.reason !== undefined && { reason: request.reason }) };
  await record("begun", what);
  try {
    await actOnAll(ports, request, filter, total);
  } catch (error) {
    await record("failed", { ...what, ...total.counts, error: messageOf(error) });
    throw error;
  }
  await record("done", { ...what, ...total.counts, ...(request.signal?.aborted && { stopped: true }) });
  return total.outcome;
}

async function actOnAll(ports: BulkPorts, request: BulkRequest, filter: RunFilter, total: Total): Promise<void> {
  for await (const rows of pagesOf(ports.store, filter)) {
    if (request.signal?.aborted) return;
    for (let at = 0; at < rows.length; at += AT_ONCE)
      await Promise.all(rows.slice(at, at + AT_ONCE).map((row) => actOn(ports, request, row, total)));
    ports.sent();
    request.onProgress?.(total.outcome);
  }
}

async function actOn(ports: BulkPorts, request: BulkRequest, { id }: RunRow, total: Total): Promise<void> {
  total.matched += 1;
  try {
    const isDone = request.action === "cancel" ? await cancelOne(ports, request, id) : await ports.retryOnce(id);
    if (isDone === false || isDone === null) total.already += 1;
    else total.done += 1;
  } catch (error) {
    // Without a store there is no next run either.
    if (hasCode(error, "storage_unavailable") || hasCode(error, "unknown_outcome")) throw error;
    total.fail(id, messageOf(error));
  }
}

const IS_CANCELLED: Readonly<Record<Delivery, boolean>> = {
  delivered: true,
  duplicate: false,
  ended: false,
  missing: false,
};

async function cancelOne(ports: BulkPorts, request: BulkRequest, run: string): Promise<boolean> {
  assertNotAlerts(run);
  const data = cancelText({ reason: request.reason ?? "", compensate: request.compensate === true });
  const message: Message = { to: run, id: ports.newId(), kind: "cancel", name: "", data };
  return IS_CANCELLED[await ports.store.deliver(message)];
}

class Total {
  matched = 0;
  done = 0;
  already = 0;
  readonly #failed: { readonly id: string; readonly error: string }[] = [];
  #failures = 0;
  readonly #dryRun: boolean;

  constructor(dryRun: boolean) {
    this.#dryRun = dryRun;
  }

  fail(id: string, error: string): void {
    this.#failures += 1;
    if (this.#failed.length < MOST_FAILURES) this.#failed.push({ id, error });
  }

  get counts() {
    return { matched: this.matched, done: this.done, already: this.already, failed: this.#failures };
  }

  get outcome(): BulkOutcome {
    return { ...this.counts, failed: [...this.#failed], dryRun: this.#dryRun };
  }
}

/** Of the runs that fit, those that the action is for. */
async function filterFor(store: Store, { action, filter }: BulkRequest): Promise<RunFilter> {
  const fitting = filterOf(filter, readFacts(await store.workflows()));
  const meant = RUN_STATES.filter((state) => isFor(action, state));
  return { ...fitting, states: fitting.states?.filter((state) => meant.includes(state)) ?? meant };
}

function isFor(action: BulkRequest["action"], state: RunState): boolean {
  return action === "cancel" ? !isTerminal(state) : state === "failed" || state === "cancelled";
}

/** Newest first: what is started meanwhile is not among them. */
async function* pagesOf(store: Store, filter: RunFilter): AsyncGenerator<RunRow[]> {
  let before: string | null = null;
  for (;;) {
    const rows: RunRow[] = await store.runs({ ...filter, limit: PAGE, ...(before !== null && { before }) });
    if (rows.length > 0) yield rows;
    if (rows.length < PAGE) return;
    before = rows.at(-1)?.id ?? null;
  }
}

function noAction(action: unknown): PawlError {
  return new PawlError(
    "invalid_argument",
    `\`action\` of a bulk is ${JSON.stringify(action)}. Give "cancel" or "retry".`,
    { fields: { field: "action" } },
  );
}
