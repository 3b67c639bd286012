// Points
// Where a process can die, as far as anybody could tell the difference: around every write to the store, around every step's function, and
// after each effect that one makes.
import type { Commit } from "../../core/store.ts";

/**
 * What goes wrong at a point:
 * - `kill`: the process is gone; another one finds what it has left;
 * - `lost-answer`: what the store was asked is done, or not, and nobody says which;
 * - `take-over`: the process stands still for longer than its lease, another one takes over, and then it goes on.
 */
export type CrashMode = "kill" | "lost-answer" | "take-over";

export const CRASH_MODES: readonly CrashMode[] = ["kill", "lost-answer", "take-over"];

export type PointKind = "before-commit" | "after-commit" | "step" | "effect" | "wake" | "signal" | "undisturbed";

/** A moment at which a run can be interrupted. */
export interface CrashPoint {
  /** Counted from 1; `at: n` explores this one alone. */
  readonly n: number;
  readonly kind: PointKind;
  /** For people: `after commit 4 (step "charge" completed)`. */
  readonly label: string;
}

/** A step's function has no answer from the store that could be lost, and in its middle it cannot be held up. */
export function modesAt(kind: PointKind): readonly CrashMode[] {
  if (kind === "effect") return ["kill"];
  return kind === "step" ? ["kill", "take-over"] : CRASH_MODES;
}

const WORDS: Readonly<Record<string, string>> = {
  "run.started": "run started",
  "run.continued": "run continued",
  "run.cancelling": "cancel recorded",
  "run.succeeded": "run succeeded",
  "run.failed": "run failed",
  "run.cancelled": "run cancelled",
  "run.parked": "run parked",
  "step.started": "started",
  "step.completed": "completed",
  "step.failed": "failed",
  checkpoint: "saved",
  "effect.planned": "planned",
  "effect.executed": "executed",
  "effect.compensated": "done",
  "effect.unknown": "unknown",
  "run.compensating": "undoing begun",
  "timer.set": "set",
  "timer.fired": "fired",
  "signal.awaited": "awaited",
  "signal.received": "received",
  "child.started": "started",
  "child.ended": "ended",
  "approval.requested": "requested",
  "approval.escalated": "escalated",
  "approval.decided": "decided",
  "callback.opened": "opened",
  "callback.ended": "ended",
};

/** What a commit records, in words: `step "charge" completed, step "receipt" started`. */
export function describeCommit({ runs }: Commit): string {
  const words = runs.flatMap(({ entries, row }) => [
    ...entries.map(({ type, key }) => describeEntry(type, key)),
    ...(row?.release === true && row.ended !== true && row.state !== "parked" ? ["run suspended"] : []),
  ]);
  const shown = words.slice(0, 4).join(", ");
  return words.length > 4 ? `${shown} and ${words.length - 4} more` : shown || "row only";
}

function describeEntry(type: string, key: string | null): string {
  const [subject = type] = type === "checkpoint" ? ["step"] : type.split(".");
  const words = WORDS[type] ?? type;
  return key === null ? words : `${subject} "${key}" ${words}`;
}
