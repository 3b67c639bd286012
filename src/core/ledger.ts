// The ledger
// What a run has done outside, folded from its journal: planned before it began, and what became of it.
import { messageWithCause, readProperty } from "../base/errors.ts";
import {
  type EffectClass,
  type EffectPlanned,
  type EffectUnknown,
  type Entry,
  entryKind,
  type StepFailed,
  type StepStarted,
} from "./journal.ts";
import type { EffectState } from "./state-machines.ts";
import { EarlierAttempts, UNDO_SUFFIX } from "./undoable-call.ts";

/** One action of a run: an effect, or a step that can be undone. */
export interface EffectRecord {
  /** The step's key. */
  readonly effect: string;
  /** Unknown: a crash, a lost answer or the end of the run hid whether it happened. Failed: it did not. */
  readonly status: EffectState;
  readonly class: EffectClass;
  /** What the outside may recognise it by; empty for a step, whose key is derived from its run and key. */
  readonly key: string;
  readonly guard: EffectPlanned["guard"];
  /** The id of the approval that it rests on. */
  readonly approval: string | null;
  /** Whether the run knows how to take it back. */
  readonly undo: boolean;
  readonly attempts: number;
  /** Its run is dry: it was answered, and nothing was done. */
  readonly dry?: true;
  readonly plannedAt: Date;
  readonly executedAt: Date | null;
  readonly compensatedAt: Date | null;
  readonly value?: unknown;
  /** Why it failed or nobody can tell, or why it could not be undone. */
  readonly error?: string;
}

/** An action while the journal is read. */
interface Line {
  record: EffectRecord;
  /** An attempt is under way. */
  isOpen: boolean;
  readonly earlier: EarlierAttempts;
}

/** All actions, in the order in which they were planned. */
export function ledgerOf(entries: readonly Entry[]): EffectRecord[] {
  const all: Line[] = [];
  // Of the present generation: each names its actions anew.
  const lines = new Map<string, Line>();
  for (const entry of entries) {
    const { type, key } = entry;
    if (type === "run.continued" || entryKind(entry) === "end") {
      for (const line of lines.values()) line.record = leftOpen(line);
      lines.clear();
    }
    if (key === null) continue;
    // An action in a map may be named like an undo.
    const own = lines.get(key);
    const undoes = lines.get(key.slice(0, -UNDO_SUFFIX.length));
    if (isPlan(entry)) {
      const made = { record: planned(entry, key), isOpen: true, earlier: new EarlierAttempts() };
      lines.set(key, made);
      all.push(made);
    } else if (own !== undefined) {
      own.record = changed(own, entry);
      if (type === "step.started" || type === "step.failed") own.isOpen = type === "step.started";
    } else if (undoes !== undefined && key.endsWith(UNDO_SUFFIX)) undoes.record = undone(undoes.record, entry);
  }
  return all.map(({ record }) => record);
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
    ...((payload as { readonly dry?: true } | null)?.dry === true && { dry: true }),
    plannedAt: new Date(at),
    executedAt: null,
    compensatedAt: null,
  };
}

function changed({ record, earlier }: Line, { type, payload, at }: Entry): EffectRecord {
  earlier.take(type, payload);
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
      const status = retryAt !== null ? "planned" : earlier.mayHaveHappened ? "unknown" : "failed";
      return { ...record, status, error: messageWithCause(error) };
    }
    default:
      return record;
  }
}

/** The run has gone on without it: unless all of its attempts had failed for sure, it may have happened. */
function leftOpen({ record, isOpen, earlier }: Line): EffectRecord {
  if (record.status !== "planned") return record;
  return { ...record, status: isOpen || earlier.mayHaveHappened ? "unknown" : "failed" };
}

function undone(record: EffectRecord, { type, payload, at }: Entry): EffectRecord {
  if (type === "effect.compensated") return { ...record, status: "compensated", compensatedAt: new Date(at) };
  if (type === "step.failed") return { ...record, error: messageWithCause((payload as StepFailed).error) };
  return record;
}

/** Who has to see to what a run has left behind, if something is left and its workflow has an owner. */
export function ownerOf(error: unknown): string | null {
  const owner = readProperty(readProperty(error, "fields"), "owner");
  return readProperty(error, "code") === "compensation_incomplete" && typeof owner === "string" ? owner : null;
}
