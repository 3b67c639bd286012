// The answers that an operation gives to the three questions of a step (S0-35), and its class of idempotency (S0-25).
import type { EffectClass } from "../../core/journal.ts";
import type { Operation, OperationKind } from "./operation.ts";

/** A step, an effect or a transaction, and what keeps it from happening twice. */
export interface LintedOperation {
  readonly workflow: string;
  readonly name: string;
  readonly kind: OperationKind;
  /** What it may change; `null`: it does not say. */
  readonly class: EffectClass | null;
  /** Why it may run twice; `null`: a step that was not seen to do anything outside. */
  readonly idempotency: "natural" | "detection" | "conditional" | "not idempotent" | null;
  /** Question 1: whether a second run has effects outside. */
  readonly secondRun: "none" | "effects" | "unknown";
  /** Whether that was seen; otherwise it is what the code says, or leaves open. */
  readonly isSeen: boolean;
  /** Question 2: how it is noticed that it was done already; `null`: there is nothing to notice. */
  readonly detectedBy: "detect" | "key" | "overwrite" | "transaction" | "person" | "not repeated" | "nothing" | null;
  /** Question 3: whether the detector only looks; `null`: it has none. */
  readonly detection: "only looks" | "writes" | "not watched" | null;
  readonly undo: "none" | "played" | "not played";
  readonly hasApproval: boolean;
  /** How often it was run, second runs aside. */
  readonly times: number;
  /** What it did outside, by the names that the recorder was given. */
  readonly did: readonly string[];
}

export function answersOf(operation: Operation): LintedOperation {
  const { workflow, name, kind, class: level, canUndo, needsApproval } = operation.declared;
  return {
    workflow,
    name,
    kind,
    class: level,
    idempotency: idempotencyOf(operation),
    ...secondRunOf(operation),
    detectedBy: detectedBy(operation),
    detection: detectionOf(operation),
    undo: canUndo ? (operation.isUndone ? "played" : "not played") : "none",
    hasApproval: needsApproval,
    times: operation.places.size,
    did: [...operation.did],
  };
}

/** A step that nothing is known of but that it returns a value. */
export function isPure({ declared, did }: Operation): boolean {
  return declared.kind === "step" && !declared.canUndo && did.size === 0;
}

function idempotencyOf(operation: Operation): LintedOperation["idempotency"] {
  const { declared, isRepeated, again } = operation;
  const { kind, guard, class: level } = declared;
  if (isPure(operation)) return null;
  if (kind === "transaction") return "conditional";
  if (guard === "detect") return "detection";
  if (guard === "natural" || level === "read") return "natural";
  if (guard === "idempotent") return isNatural(operation) ? "natural" : "conditional";
  return kind === "step" && isRepeated && again.size === 0 ? "conditional" : "not idempotent";
}

/** Whoever never asks for a key is not recognised by one. */
function isNatural({ declared, places, usedKey }: Operation): boolean {
  return declared.guard === "natural" || (places.size > 0 && !usedKey && !declared.hasKey);
}

function secondRunOf(operation: Operation): Pick<LintedOperation, "secondRun" | "isSeen"> {
  const { declared, isRepeated, again, isWatched } = operation;
  const { kind, guard, class: level } = declared;
  if (isRepeated) return { secondRun: again.size === 0 ? "none" : "effects", isSeen: true };
  if (isPure(operation)) return { secondRun: isWatched ? "none" : "unknown", isSeen: isWatched };
  const isHarmless = kind === "transaction" || guard === "idempotent" || guard === "natural" || level === "read";
  return { secondRun: isHarmless ? "none" : "effects", isSeen: false };
}

function detectedBy(operation: Operation): LintedOperation["detectedBy"] {
  const { declared, isRepeated, again } = operation;
  const { kind, guard, class: level, recovery } = declared;
  if (isPure(operation) || level === "read") return null;
  if (kind === "transaction") return "transaction";
  if (guard === "detect") return "detect";
  if (guard !== "none") return isNatural(operation) ? "overwrite" : "key";
  if (recovery === "ask") return "person";
  if (recovery !== "rerun") return "not repeated";
  return kind === "step" && isRepeated && again.size === 0 ? "key" : "nothing";
}

function detectionOf({
  declared,
  detectorFailures,
  isDetectorAsked,
  isWatched,
}: Operation): LintedOperation["detection"] {
  if (declared.guard !== "detect") return null;
  if (detectorFailures.some(({ kind }) => kind === "wrote")) return "writes";
  return isDetectorAsked && isWatched ? "only looks" : "not watched";
}
