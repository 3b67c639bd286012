// Alerts
// What an alert is, what fires it, and what may be reported. `alert-book.ts` has the rules.
import type { AlertState } from "./state-machines.ts";

/** What the run that keeps alerts is a run of. It has no body: its worker takes reports in and lets it go. */
export const ALERTS_WORKFLOW = "pawl.alerts";

export const ALERT_KINDS = [
  "retry_storm",
  "stuck_approval",
  "duplicate_effect",
  "replay_failure",
  "stranded_run",
  "orphaned_run",
  "parked_run",
  "compensation_incomplete",
  "budget_near",
  "budget_exceeded",
] as const;

export type AlertKind = (typeof ALERT_KINDS)[number];

/** Something that somebody should look at. */
export interface Condition {
  readonly kind: AlertKind;
  /** Tells it from others of its kind: an approval, a run, a tool. While it has an alert, there is no second one. */
  readonly subject: string;
  /** How far it has come, from 0 on: a higher one is a new alert. */
  readonly level: number;
  readonly workflow: string | null;
  /** Some of the runs that it is about. */
  readonly runs: readonly string[];
  /** On one line. */
  readonly summary: string;
  /** What a program may want to know of it. */
  readonly detail: Readonly<Record<string, unknown>>;
}

/** A condition that was found, and what people have said to it. Times are store time. */
export interface Alert extends Condition {
  readonly id: string;
  readonly status: AlertState;
  /** Who is told. */
  readonly owner: string | null;
  readonly firedAt: number;
  /** When it was last seen, and how often in all. */
  readonly lastAt: number;
  readonly count: number;
  readonly acknowledgedAt: number | null;
  readonly acknowledgedBy: string | null;
  readonly resolvedAt: number | null;
  /** `null`: what it was about is over. */
  readonly resolvedBy: string | null;
  /** The same was resolved a moment before: nobody was told again. */
  readonly isRepeat: boolean;
}

/** An action that was done outside, by whom. */
export interface EffectMention {
  readonly run: string;
  readonly effect: string;
}

/** What workers and people tell the run of the alerts. */
export type Report =
  | { readonly kind: "seen"; readonly at: number; readonly condition: Condition; readonly owner: string | null }
  | { readonly kind: "over"; readonly at: number; readonly alert: AlertKind; readonly subject: string }
  | RetriesReport
  | EffectReport
  | DuplicatesReport
  | { readonly kind: "acknowledge" | "resolve"; readonly at: number; readonly id: string; readonly by: string };

export interface RetriesReport {
  readonly kind: "retries";
  readonly at: number;
  readonly workflow: string;
  readonly tool: string;
  readonly count: number;
  readonly runs: readonly string[];
  readonly owner: string | null;
}

/** An action that may be somebody else's as well: it has a key of the business, or rests on an approval. */
export interface EffectReport {
  readonly kind: "effect";
  readonly at: number;
  /** What both would have in common. */
  readonly action: string;
  readonly workflow: string;
  readonly record: EffectMention;
  readonly owner: string | null;
}

/** Starts and signals that had come before, and changed nothing. */
export interface DuplicatesReport {
  readonly kind: "duplicates";
  readonly at: number;
  readonly workflow: string;
  readonly count: number;
  readonly runs: readonly string[];
}

/** What fires, and when. `null` and false: never. */
export interface AlertRules {
  readonly owner: string | null;
  readonly quietMs: number;
  readonly everyMs: number;
  readonly retryStorm: { readonly retries: number; readonly perMs: number } | null;
  readonly stuckApproval: { readonly afterMs: readonly number[] } | null;
  readonly strandedRun: { readonly afterMs: number } | null;
  readonly budget: { readonly near: number } | null;
  readonly duplicateEffect: boolean;
  readonly replayFailure: boolean;
  readonly orphanedRun: boolean;
  readonly parkedRun: boolean;
  readonly compensationIncomplete: boolean;
}

export function isOn(rules: AlertRules, kind: AlertKind): boolean {
  switch (kind) {
    case "retry_storm":
      return rules.retryStorm !== null;
    case "stuck_approval":
      return rules.stuckApproval !== null;
    case "stranded_run":
      return rules.strandedRun !== null;
    case "budget_near":
    case "budget_exceeded":
      return rules.budget !== null;
    case "duplicate_effect":
      return rules.duplicateEffect;
    case "replay_failure":
      return rules.replayFailure;
    case "orphaned_run":
      return rules.orphanedRun;
    case "parked_run":
      return rules.parkedRun;
    case "compensation_incomplete":
      return rules.compensationIncomplete;
  }
}
