// Debounce
// A burst of starts becomes one run with the last input. The first start creates the run, to begin when it has been quiet for a while; each
// further one gives that run its own input, as a new generation, and puts it off. All of them get the same run. Once it has begun it
// is left alone, and the next start creates another.
//
//   D1. The store's unique key says which run is pending, never a look before the write (I17).
//   D2. Only the owner of a run writes to it: a start takes the pending run for one commit, and gives it back with that (P18).
import { type Duration, toMs } from "../base/duration.ts";
import { assertName } from "../base/ids.ts";
import { type BudgetPlan, budgetsFor } from "../core/budget.ts";
import { Draft } from "../core/draft.ts";
import type { Continued } from "../core/journal.ts";
import type { ClaimedRun, Needs, NewKey, RunCommit, Store, Verdict } from "../core/store.ts";
import { openEntry } from "../core/values.ts";
import type { StartPorts } from "./start.ts";

export interface Debounce {
  /** Starts with the same key are one burst. Unique per workflow. */
  readonly key: string;
  /** How long no further start must come before the run begins. */
  readonly wait: Duration;
  /** The longest that the first start of a burst is put off. Default: no limit. */
  readonly max?: Duration;
}

export interface Quiet {
  readonly key: string;
  readonly waitMs: number;
  readonly maxMs: number;
}

export function quietOf({ key, wait, max }: Debounce): Quiet {
  assertName("debounce key", key);
  const maxMs = max === undefined ? Number.POSITIVE_INFINITY : toMs(max, "debounce.max");
  return { key, waitMs: toMs(wait, "debounce.wait"), maxMs };
}

export interface Burst extends Quiet {
  readonly workflow: string;
  /** The input of this start, and what a run with it needs. */
  readonly input: unknown;
  readonly needs: Needs | null;
  /** Counted from when this start lets the run begin: however long it is put off, that takes nothing of its time. */
  readonly deadline: number;
  readonly plan?: BudgetPlan;
}

/** How long a start waits for another one that is writing to the same run, and how often it looks. */
const TRIES = 1000;
const PAUSE_MS = 5;

/** Gives the id of the run that this start has become part of; `null` with the verdict if it was refused for another reason. */
export async function startDebounced(
  ports: StartPorts,
  creation: RunCommit,
  burst: Burst,
): Promise<{ readonly run: string } | { readonly verdict: Verdict }> {
  const { worker, store } = ports;
  const key: NewKey = { space: `debounce:${burst.workflow}`, key: burst.key, digest: "" };
  let from: { readonly from?: string } = {};
  for (let tries = 0; ; tries++) {
    const verdict = await worker.committer.write({ ...creation, keys: [{ ...key, ...from }] });
    if (verdict.kind === "applied") return { run: creation.run };
    if (verdict.kind !== "refused" || verdict.why !== "key") return { verdict };
    const pending = verdict.holder.run;
    const outcome = await worker.amend(pending, (claimed) => nextInput(ports, claimed, burst));
    if (outcome === "written") return { run: pending };
    if (outcome === "busy" && tries < TRIES) await pause(store);
    else from = { from: pending };
  }
}

function pause({ leaseClock }: Store): Promise<void> {
  return new Promise((resolve) => void leaseClock.after(PAUSE_MS, resolve));
}

function nextInput({ store, host, codec }: StartPorts, claimed: ClaimedRun, burst: Burst): RunCommit {
  const last = claimed.journal.at(-1);
  const now = store.clock.now();
  const draft = new Draft(
    claimed.run,
    { head: claimed.head, hash: last?.hash ?? claimed.run, at: last?.at ?? 0 },
    host,
    codec,
  );
  // It may have been parked behind that, and taken up again.
  const continuedBefore = claimed.journal.findLast(({ type }) => type === "run.continued");
  const before =
    continuedBefore === undefined
      ? 0
      : (openEntry(codec, claimed.run, continuedBefore).payload as Continued).generation;
  const { input, deadline } = burst;
  const wakeAt = Math.min(now + burst.waitMs, claimed.row.createdAt + burst.maxMs);
  const continued: Continued = {
    generation: before + 1,
    input,
    state: {},
    cost: {},
    replaces: true,
    deadline,
    notBefore: wakeAt,
    ...(burst.plan !== undefined && { budgets: budgetsFor(claimed.run, burst.plan, wakeAt) }),
  };
  draft.append(now, "run.continued", null, continued);
  const { head, hash } = draft.chain;
  // By the time this is written, this worker may have claimed it under another incarnation.
  draft.row({ state: "accepted", head, headHash: hash, release: true, readyAt: null, wakeAt, claims: 0, deadline });
  if (burst.needs !== null) draft.row({ needs: burst.needs });
  return draft.take().commit;
}
