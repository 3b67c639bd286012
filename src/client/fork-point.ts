// Where a fork is cut
// Decides from a journal alone how much of it a retry or a fork inherits.
import { encode } from "../base/codec.ts";
import { PawlError } from "../base/errors.ts";
import type { ApprovalDecided } from "../core/approval-request.ts";
import type { CallbackEnded } from "../core/callback.ts";
import {
  type ChildEnded,
  type EffectPlanned,
  type Ended,
  type Entry,
  entryKind,
  type StepFailed,
} from "../core/journal.ts";
import { nameOf } from "../core/key-scope.ts";
import { EarlierAttempts, isUnsafe, UNDO_SUFFIX } from "../core/undoable-call.ts";

export interface ForkPoint {
  /** How many entries are inherited. */
  readonly at: number;
  /** The last inherited entry is a final failure that is to be tried again. */
  readonly tryAgain: boolean;
}

/** Where `retry` picks up: at the failure that ended the run, or else right before its end. */
export function retryPoint(run: string, journal: readonly Entry[]): ForkPoint {
  const end = endOf(journal);
  const last = journal.at(-1);
  // One that is being undone has begun to end, and still acts: what it takes back, its retry would take for done.
  if (last === undefined || entryKind(last) !== "end") {
    const next = end === journal.length ? "Cancel it first, or fork it." : "It is about to: retry it when it has.";
    throw new PawlError("invalid_argument", `Run ${run} has not ended, so there is nothing to retry. ${next}`, {
      fields: { run },
    });
  }
  if (last.type === "run.succeeded") {
    throw new PawlError(
      "invalid_argument",
      `Run ${run} succeeded, so there is nothing to retry. Fork it to run a part of it again.`,
      { fields: { run } },
    );
  }
  const undone = firstUndone(journal);
  if (undone >= 0) return { at: undone, tryAgain: false };
  const before = journal.slice(0, end);
  const causes = causesOf((last.payload as Partial<Ended> | null)?.error);
  const thrown = before.findLastIndex((entry) => causes.some((error) => isFailureOf(run, entry, error)));
  // Cancelled or out of time: whatever had failed before was dealt with.
  if (journal[end]?.type === "run.cancelling") return { at: end, tryAgain: false };
  const failure = thrown < 0 ? before.findLastIndex((entry) => entryKind(entry) === "outcome") : thrown;
  const outcome = before[failure];
  // Whether it happened nobody can tell, so it is left open: its recovery says who is asked, or what becomes of it (E-13).
  if (outcome?.type === "step.failed" && isInDoubt(before.slice(0, failure + 1), outcome.key))
    return { at: failure, tryAgain: false };
  if (outcome?.type === "step.failed") return { at: failure + 1, tryAgain: true };
  // Whoever denied it, or let it pass, is asked again.
  if (outcome?.type === "approval.decided" && (outcome.payload as ApprovalDecided).decision !== "approved")
    return { at: failure, tryAgain: false };
  // The address is open again.
  if (outcome?.type === "callback.ended" && (outcome.payload as CallbackEnded).status !== "answered")
    return { at: failure, tryAgain: false };
  // It waits anew.
  if (outcome?.type === "timer.fired" && failure === thrown) return { at: failure, tryAgain: false };
  if (outcome?.type === "child.ended" && (outcome.payload as ChildEnded).status !== "succeeded")
    return { at: failure, tryAgain: false };
  return { at: end, tryAgain: false };
}

/** Whether this is an action that nothing keeps from happening twice, and that may have happened. */
function isInDoubt(journal: readonly Entry[], key: string | null): boolean {
  const planned = journal.findLastIndex((entry) => entry.type === "effect.planned" && entry.key === key);
  const plan = journal[planned]?.payload as EffectPlanned | undefined;
  if (plan === undefined || !isUnsafe(plan)) return false;
  const attempts = new EarlierAttempts();
  for (const entry of journal.slice(planned + 1)) if (entry.key === key) attempts.take(entry.type, entry.payload);
  return attempts.mayHaveHappened;
}

/** An error and what it was caused by, outermost first. */
function causesOf(error: unknown): Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : [];
}

/** Whether the body got this error from that outcome; it may have cleaned up before it threw it on. */
function isFailureOf(
  run: string,
  entry: Entry,
  error: Error & {
    code?: unknown;
    fields?: { run?: unknown; child?: unknown; approval?: unknown; callback?: unknown; signal?: unknown };
  },
): boolean {
  if (entry.type === "approval.decided") return error.fields?.approval === (entry.payload as ApprovalDecided).id;
  if (entry.type === "callback.ended") return error.fields?.callback === (entry.payload as CallbackEnded).id;
  if (entry.type === "child.ended") return error.fields?.child === (entry.payload as ChildEnded).child;
  if (entry.type === "timer.fired" && entry.payload !== null)
    return error.code === "wait_timeout" && error.fields?.run === run && error.fields.signal === nameOf(entry.key);
  if (entry.type !== "step.failed" || entryKind(entry) !== "outcome") return false;
  return encode((entry.payload as StepFailed).error) === encode(error);
}

/** Where the run began to end; its length if it has not. No fork inherits an end. */
function endOf(journal: readonly Entry[]): number {
  const end = journal.findIndex(
    ({ type, ...rest }) =>
      type === "run.cancelling" || type === "run.compensating" || entryKind({ type, ...rest }) === "end",
  );
  return end < 0 ? journal.length : end;
}

/** The first action that was undone: whoever goes on from behind it would take for done what is not. Earlier generations keep theirs. */
function firstUndone(journal: readonly Entry[]): number {
  const undone = new Set(journal.filter(({ type }) => type === "effect.compensated").map(({ key }) => key));
  if (undone.size === 0) return -1;
  const start = journal.findLastIndex(({ type }) => type === "run.continued");
  return journal.findIndex(({ key }, at) => at > start && key !== null && undone.has(`${key}${UNDO_SUFFIX}`));
}

/** Where `fork({ at })` cuts: before the entry with that position, or before the call with that key. */
export function forkPoint(run: string, journal: readonly Entry[], at: string | number): ForkPoint {
  const position =
    typeof at === "number" ? at : journal.findIndex((entry) => entry.key === at && entryKind(entry) === "call");
  if (Number.isInteger(position) && position >= 1 && position <= journal.length)
    return { at: Math.min(position, endOf(journal)), tryAgain: false };
  const keys = journal.filter((entry) => entryKind(entry) === "call").map((entry) => entry.key);
  throw new PawlError(
    "invalid_argument",
    `Run ${run} cannot be forked at ${JSON.stringify(at)}. Give a position from 1 to ${journal.length}, or one of its keys: ${keys.slice(0, 20).join(", ")}.`,
    { fields: { run, at } },
  );
}
