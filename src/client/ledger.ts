// The ledger
// What a run has done outside, folded from its journal: planned before it began, and what became of it.
import { messageWithCause } from "../base/errors.ts";
import type { EffectClass, EffectPlanned, EffectUnknown, Entry, StepFailed, StepStarted } from "../core/journal.ts";
import { leavesDoubt, UNDO_SUFFIX } from "../core/undoable-call.ts";

/** One action of a run: an effect, or a step that can be undone. */
export interface EffectRecord {
  /** The step's key. */
  readonly effect: string;
  /** Unknown: a crash or a lost answer hid whether it happened. Failed: it did not. */
  readonly status: "planned" | "executed" | "compensated" | "unknown" | "failed";
  readonly class: EffectClass;
  /** What the outside may recognise it by; empty for a step, whose key is derived from its run and key. */
  readonly key: string;
  readonly guard: EffectPlanned["guard"];
  /** The id of the approval that it rests on. */
  readonly approval: string | null;
  /** Whether the run knows how to take it back. */
  readonly undo: boolean;
  readonly attempts: number;
  readonly plannedAt: Date;
  readonly executedAt: Date | null;
  readonly compensatedAt: Date | null;
  readonly value?: unknown;
  /** Why it failed or nobody can tell, or why it could not be undone. */
  readonly error?: string;
}

/** All actions, in the order in which they were planned. */
export function ledgerOf(entries: readonly Entry[]): EffectRecord[] {
  const closed: EffectRecord[] = [];
  const ledger = new Map<string, EffectRecord>();
  const inDoubt = new Set<string>();
  for (const entry of entries) {
    const { type, key } = entry;
    if (type === "run.continued") {
      // The next generation has the same keys for actions of its own.
      closed.push(...ledger.values());
      ledger.clear();
      inDoubt.clear();
    }
    if (key === null) continue;
    if (leavesDoubt(entry)) inDoubt.add(key);
    if (isPlan(entry)) ledger.set(key, planned(entry, key));
    else if (key.endsWith(UNDO_SUFFIX))
      change(ledger, key.slice(0, -UNDO_SUFFIX.length), (record) => undone(record, entry));
    else change(ledger, key, (record) => changed(record, entry, inDoubt.has(key)));
  }
  return [...closed, ...ledger.values()];
}

function isPlan({ type, payload }: Entry): boolean {
  if (type === "effect.planned") return true;
  return type === "step.started" && (payload as StepStarted)?.undo === true;
}

function planned({ type, payload, at }: Entry, key: string): EffectRecord {
  const plan = type === "effect.planned" ? (payload as EffectPlanned) : null;
  return {
    effect: key,
    status: "planned",
    class: plan?.class ?? "write",
    key: plan?.key ?? "",
    guard: plan?.guard ?? "none",
    approval: plan?.approval ?? null,
    undo: plan?.undo ?? true,
    attempts: 1,
    plannedAt: new Date(at),
    executedAt: null,
    compensatedAt: null,
  };
}

function change(ledger: Map<string, EffectRecord>, key: string, how: (record: EffectRecord) => EffectRecord): void {
  const record = ledger.get(key);
  if (record !== undefined) ledger.set(key, how(record));
}

function changed(record: EffectRecord, { type, payload, at }: Entry, isInDoubt: boolean): EffectRecord {
  switch (type) {
    case "step.started":
      return { ...record, status: "planned", attempts: (payload as NonNullable<StepStarted>).attempt };
    case "effect.executed":
    case "step.completed":
      return { ...record, status: "executed", executedAt: new Date(at), value: payload };
    case "effect.unknown": {
      const { error } = payload as EffectUnknown;
      return { ...record, status: "unknown", ...(error !== undefined && { error: messageWithCause(error) }) };
    }
    case "step.failed": {
      const { error, retryAt } = payload as StepFailed;
      const status = retryAt !== null ? "planned" : isInDoubt ? "unknown" : "failed";
      return { ...record, status, error: messageWithCause(error) };
    }
    default:
      return record;
  }
}

function undone(record: EffectRecord, { type, payload, at }: Entry): EffectRecord {
  if (type === "effect.compensated") return { ...record, status: "compensated", compensatedAt: new Date(at) };
  if (type === "step.failed") return { ...record, error: messageWithCause((payload as StepFailed).error) };
  return record;
}
