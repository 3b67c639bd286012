// The journal
// A run's entries, the only truth about it. Every entry is a call (matched by replay), an outcome (delivered to the body,
// one per turn) or a mark (passed over); P1. Payloads are encoded values; the shapes below are what they decode to.

import type { Amounts, Budget } from "./budget.ts";

export const CALLS = [
  "step.started",
  "effect.planned",
  "timer.set",
  "signal.awaited",
  "child.started",
  "approval.requested",
  "callback.opened",
] as const;

export const OUTCOMES = [
  "run.started",
  "step.completed",
  "step.failed",
  "effect.executed",
  "effect.compensated",
  "timer.fired",
  "signal.received",
  "child.ended",
  "approval.decided",
  "callback.ended",
  "run.cancelling",
  "run.compensating",
  "run.continued",
] as const;

/** Recorded within the turn that made them and matched there by kind and ordinal (P9). */
export const NOTES = ["state.patched", "note", "cost", "patched"] as const;

export const MARKS = [
  "version.changed",
  "effect.unknown",
  "run.parked",
  "run.resolved",
  "run.forked",
  "outcome.recorded",
  "approval.escalated",
  "step.refused",
  "step.reserved",
  "step.spent",
  "checkpoint",
] as const;

export const ENDS = ["run.succeeded", "run.failed", "run.cancelled"] as const;

export type CallType = (typeof CALLS)[number];
export type OutcomeType = (typeof OUTCOMES)[number];
export type NoteType = (typeof NOTES)[number];
export type MarkType = (typeof MARKS)[number];
export type EndType = (typeof ENDS)[number];
export type EntryType = CallType | OutcomeType | NoteType | MarkType | EndType;

/** An entry as a store keeps it: `data` is the sealed text of the payload, `null` for none. */
export interface StoredEntry {
  readonly seq: number;
  /** Stamped by the worker from its estimate of store time, never before the previous entry's (P8). */
  readonly at: number;
  readonly type: EntryType;
  readonly key: string | null;
  readonly data: string | Uint8Array | null;
  /** Checksum over this entry and its predecessor's checksum; the first one starts from the run's id (P35). */
  readonly hash: string;
}

/** An entry whose payload has been opened. */
export interface Entry<P = unknown> {
  readonly seq: number;
  readonly at: number;
  readonly type: EntryType;
  readonly key: string | null;
  readonly payload: P;
}

export interface RunStarted {
  readonly workflow: string;
  readonly version: string;
  readonly input: unknown;
  /** What random numbers and idempotency keys are derived from: the run's id, unless it is a fork. */
  readonly seed: string;
  readonly deadline: number | null;
  /** Those that hold for the run, outermost first. Absent: the workflow's, if it has one. */
  readonly budgets?: readonly Budget[];
  /** What is said to have been done before the run began: it was taken over from elsewhere. */
  readonly adopted?: unknown;
  /** The structural hash of the definition that it began with. Absent: the definition has none, or nobody knew it. */
  readonly structure?: string;
  /** The versions of what the definition uses, pinned for the run. */
  readonly uses?: Uses;
  /** The run above it is dry, and so is this one. */
  readonly effects?: DryPolicy;
  /** Store time before which its body must not begin. Absent: it may begin at once. */
  readonly notBefore?: number;
}

/** How a dry run answers what would act outside: only with what was recorded, or also with what the call itself says. */
export type DryPolicy = "replay" | "dry-run";

/** Versions by name, by kind: prompts, policies, models, tools, or whatever else a workflow depends on. */
export type Uses = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** `null` stands for the first attempt of a step without input. */
export type StepStarted = null | {
  readonly attempt: number;
  readonly input?: unknown;
  readonly digest?: string;
  /** This attempt follows a crash, not a failure: it uses up no retry (P28). */
  readonly rerun?: true;
  /** It can be undone. */
  readonly undo?: true;
  /** What this commit has reserved for the attempt. */
  readonly spend?: Amounts;
  /** It is not done: its run is dry. */
  readonly dry?: true;
};

/** A call that was refused before has what it needs now: it begins. */
export interface Reserved {
  readonly spend: Amounts | null;
}

/** A budget has no room for the call: what was to be reserved is not, and it does not begin. */
export interface Refused {
  /** The run that the budget was given to. */
  readonly budget: string;
  readonly unit: string;
  readonly limit: number;
  /** Spent or reserved. */
  readonly used: number;
  readonly asked: number;
}

/** What an outside action may change: nothing, something that nobody acts on yet, or the world. */
export type EffectClass = "read" | "draft" | "write" | "execute";

/** Durable before the action begins. */
export interface EffectPlanned {
  readonly attempt: 1;
  readonly class: EffectClass;
  /** What the outside may recognise it by. */
  readonly key: string;
  /** What tells a repetition from the first time; `none` for an action that must not be repeated blindly. */
  readonly guard: "detect" | "idempotent" | "none";
  readonly undo: boolean;
  /** The id of the approval that it rests on. */
  readonly approval?: string;
  /** What this commit has reserved for the attempt. */
  readonly spend?: Amounts;
  /** It is not done: its run is dry. */
  readonly dry?: true;
}

/** Nobody can tell whether the action took place: a crash or a lost answer hid it. */
export interface EffectUnknown {
  readonly attempt: number;
  /** What the last attempt failed with; absent after a crash. */
  readonly error?: unknown;
}

export interface StepFailed {
  readonly attempt: number;
  readonly error: unknown;
  /** When the next attempt is due; `null` means final, and only then the entry is an outcome. */
  readonly retryAt: number | null;
  /** A person had the run retried: the step gets its retries back. */
  readonly isRetried?: true;
  /** Nothing was done: its process was about to stop. */
  readonly hasBegun?: false;
}

/** What an attempt of a step has saved: a later one goes on from the newest. */
export interface Checkpoint {
  readonly attempt: number;
  readonly value: unknown;
}

export interface TimerSet {
  readonly due: number;
}

export interface SignalAwaited {
  readonly due: number | null;
}

export interface SignalReceived {
  readonly id: string;
  readonly payload: unknown;
  /** The payload did not fit the wait's schema: this is what the body sees instead. */
  readonly error?: unknown;
}

export interface ChildStarted {
  readonly child: string;
  readonly workflow: string;
  readonly digest: string;
  readonly detached: boolean;
}

export interface ChildEnded {
  readonly child: string;
  readonly status: "succeeded" | "failed" | "cancelled";
  /** The output, or the error of a child that did not succeed. */
  readonly value: unknown;
}

export interface StatePatched {
  readonly value: unknown;
}

export interface Cancelling {
  readonly cause: "cancel" | "deadline";
  readonly reason: string;
  /** What was done is to be undone. */
  readonly compensate?: true;
}

/** From here on nothing of the body counts: what was done is undone, and then the run ends. */
export interface Compensating {
  /** What the body failed with, or what stopped it. */
  readonly error: unknown;
}

export interface Continued {
  readonly generation: number;
  readonly input: unknown;
  /** Run state and cost as they stood: replay begins here, without the entries that made them. */
  readonly state: Readonly<Record<string, unknown>>;
  readonly cost: Readonly<Record<string, number>>;
  /** In a fork, what the generation drew from when it was recorded (P10); after a rewrite, what the one before it drew from. */
  readonly seed?: string;
  /** The generation before it never began: a start of the same burst has taken its place. */
  readonly replaces?: true;
  /** With `replaces`: of the start that has taken the place. */
  readonly deadline?: number;
  /** With `replaces`: the body must not begin before this store time. */
  readonly notBefore?: number;
  readonly budgets?: readonly Budget[];
  /** What is said to have been done before this generation began. */
  readonly adopted?: unknown;
  /** Of the definition that the generation begins with. */
  readonly structure?: string;
  readonly uses?: Uses;
  readonly effects?: DryPolicy;
  /** It was not the body that ended the generation before: what it goes on from was written from outside. */
  readonly cause?: RewriteCause;
  /** With `cause`: the version from here on, if it is another one. */
  readonly version?: string;
  /** With `cause`: who did it, and why. */
  readonly by?: string;
  readonly reason?: string;
}

/** Why a run goes on from something that its own journal does not lead to. */
export type RewriteCause = "import" | "edit" | "migration" | "accept";

/** Newer code has taken the run over; or, with the same version twice, it is the first to know its structure and what it uses. */
export interface VersionChanged {
  readonly from: string;
  readonly to: string;
  /** The structural hashes of both. Absent: neither has one. */
  readonly structure?: { readonly from: string | null; readonly to: string | null };
  /** Pinned here, because whoever started the run did not know the definition. */
  readonly uses?: Uses;
}

export interface Parked {
  readonly reason: ParkReason;
  readonly message: string;
  readonly choices: readonly string[];
  readonly detail?: Readonly<Record<string, unknown>>;
}

export type ParkReason =
  | "budget_exceeded"
  | "commit_refused"
  | "corrupted_journal"
  | "definition_changed"
  | "foreign_await"
  | "invalid_state_document"
  | "key_missing"
  | "migration_pending"
  | "newer_journal"
  | "output_missing"
  | "phase_blocked"
  | "poisoned"
  | "replay_drift"
  | "replay_stalled"
  | "secret_missing"
  | "unknown_outcome"
  | "version_mismatch";

export interface Resolved {
  readonly choice: string;
  readonly value?: unknown;
}

export interface Ended {
  readonly error: unknown;
  readonly stopReason: string;
}

export interface Forked {
  readonly from: string;
  /** How many entries were inherited. */
  readonly at: number;
  readonly seed: string;
  /** Ids of approvals that were given to the source, and stay with it: nothing new is done with them here. */
  readonly leaves?: readonly string[];
  /** What follows is dry. Absent: it acts outside. */
  readonly effects?: DryPolicy;
}

/** How a call of the source ended behind the fork point: what a dry fork answers the same call with. */
export interface OutcomeRecorded {
  readonly type: "step.completed" | "effect.executed" | "step.failed";
  /** Of its input, if it had one. */
  readonly digest: string | null;
  /** The payload of that outcome. */
  readonly value: unknown;
}

const KIND: ReadonlyMap<string, "call" | "outcome" | "note" | "mark" | "end"> = new Map([
  ...CALLS.map((type) => [type, "call"] as const),
  ...OUTCOMES.map((type) => [type, "outcome"] as const),
  ...NOTES.map((type) => [type, "note"] as const),
  ...MARKS.map((type) => [type, "mark"] as const),
  ...ENDS.map((type) => [type, "end"] as const),
]);

/** Whether this version has a meaning for entries of that type. A later one may write others: they are marks here (I23), unless they demand more (DM1). */
export function isKnownType(type: string): boolean {
  return KIND.has(type);
}

/** The last word about a step or an effect that has done what it should. */
export function isStepSuccess(type: string): boolean {
  return type === "step.completed" || type === "effect.executed" || type === "effect.compensated";
}

/** What an entry is to replay. Later attempts and failures that will be retried are marks, whatever their type says. */
export function entryKind(entry: Entry): "call" | "outcome" | "note" | "mark" | "end" {
  const kind = KIND.get(entry.type);
  if (entry.type === "step.started" && ((entry.payload as StepStarted)?.attempt ?? 1) > 1) return "mark";
  if (entry.type === "step.failed" && (entry.payload as StepFailed).retryAt !== null) return "mark";
  return kind ?? "mark";
}
