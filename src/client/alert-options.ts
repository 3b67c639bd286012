import { type Duration, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import type { AlertRules } from "../core/alert.ts";

/** What fires an alert, and when. `false` turns one off. */
export interface AlertOptions {
  /** Who is told of alerts whose workflow has no owner: a name or an address. Default: nobody by name. */
  readonly owner?: string;
  /** How long the same may come again after it was over before anybody is told again. Default 10 min. */
  readonly quiet?: Duration;
  /** How often each worker looks through the store for what should not wait any longer. Default 1 min. */
  readonly every?: Duration;
  /** So many retries of a workflow, or of one of its steps, over all workers. Default 50 in 1 min. */
  readonly retryStorm?: { readonly retries?: number; readonly per?: Duration } | false;
  /** Approvals that nobody has decided about for so long; with several times, each is a level of its own, as is each level of the approval. Default 4 h and 24 h. */
  readonly stuckApproval?: { readonly after?: Duration | readonly Duration[] } | false;
  /** Runs that no live worker can take, once they have been there for so long. Default 10 min. */
  readonly strandedRun?: { readonly after?: Duration } | false;
  /** Budgets of which this part is used, and those that a run is parked for. Default 0.8. */
  readonly budget?: { readonly near?: number } | false;
  /** The same action done twice: under one key of the business, or one approval. Default true. */
  readonly duplicateEffect?: boolean;
  /** Runs that cannot be replayed: their code does not follow the journal, or the journal is damaged. Default true. */
  readonly replayFailure?: boolean;
  /** Runs that had nothing that would have woken them. Default true. */
  readonly orphanedRun?: boolean;
  /** Runs that are parked for another reason that needs a person soon: they kill their process, or an effect has an unknown outcome. Default true. */
  readonly parkedRun?: boolean;
  /** Runs that have ended, and not all that they did could be undone. Default true. */
  readonly compensationIncomplete?: boolean;
}

export const ALERT_DEFAULTS = {
  quiet: "10m",
  every: "1m",
  retryStorm: { retries: 50, per: "1m" },
  stuckApproval: { after: ["4h", "24h"] },
  strandedRun: { after: "10m" },
  budget: { near: 0.8 },
} as const;

/** The rules that options stand for; `null`: none at all. */
export function alertRules(options: AlertOptions | false = {}): AlertRules | null {
  if (options === false) return null;
  const { retryStorm = {}, stuckApproval = {}, strandedRun = {}, budget = {}, owner } = options;
  const D = ALERT_DEFAULTS;
  if (owner !== undefined && (typeof owner !== "string" || owner === "" || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(owner)))
    throw invalid("owner", owner, "Give a name or an address, on one line");
  return {
    owner: owner ?? null,
    quietMs: toMs(options.quiet ?? D.quiet, "alerts.quiet"),
    everyMs: least("every", toMs(options.every ?? D.every, "alerts.every")),
    retryStorm: retryStorm === false ? null : stormRule(retryStorm),
    stuckApproval: stuckApproval === false ? null : { afterMs: afterOf(stuckApproval.after ?? D.stuckApproval.after) },
    strandedRun:
      strandedRun === false
        ? null
        : { afterMs: toMs(strandedRun.after ?? D.strandedRun.after, "alerts.strandedRun.after") },
    budget: budget === false ? null : { near: partOf(budget.near ?? D.budget.near) },
    duplicateEffect: options.duplicateEffect ?? true,
    replayFailure: options.replayFailure ?? true,
    orphanedRun: options.orphanedRun ?? true,
    parkedRun: options.parkedRun ?? true,
    compensationIncomplete: options.compensationIncomplete ?? true,
  };
}

function stormRule(rule: { readonly retries?: number; readonly per?: Duration }): AlertRules["retryStorm"] {
  const { retries = ALERT_DEFAULTS.retryStorm.retries, per = ALERT_DEFAULTS.retryStorm.per } = rule;
  if (!Number.isInteger(retries) || retries < 1)
    throw invalid("retryStorm.retries", retries, "Give a whole number of at least 1");
  return { retries, perMs: least("retryStorm.per", toMs(per, "alerts.retryStorm.per")) };
}

function afterOf(after: Duration | readonly Duration[]): number[] {
  const all = (Array.isArray(after) ? after : [after]) as readonly Duration[];
  if (all.length === 0) throw invalid("stuckApproval.after", "[]", "Give at least one time");
  return all.map((one) => toMs(one, "alerts.stuckApproval.after")).sort((a, b) => a - b);
}

function partOf(near: number): number {
  if (typeof near === "number" && near > 0 && near <= 1) return near;
  throw invalid("budget.near", near, "Give a part of the budget above 0 and up to 1, such as 0.8");
}

function least(field: string, ms: number): number {
  if (ms >= 1000) return ms;
  throw invalid(field, `${ms} ms`, "Give at least a second");
}

function invalid(field: string, value: unknown, action: string): PawlError {
  return new PawlError("invalid_argument", `\`alerts.${field}\` is ${String(value)}. ${action}.`, {
    fields: { field: `alerts.${field}` },
  });
}
