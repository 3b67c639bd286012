// An operation
// A step, an effect or a transaction of a workflow: what its code says of it, and what plays have seen of it. Calls of one name that say the
// same are one operation.
import type { StepPolicy } from "../../core/call.ts";
import type { EffectClass } from "../../core/journal.ts";
import type { DetectorFailure } from "../check-detector.ts";

export type OperationKind = "step" | "effect" | "transaction";

/** What the code says. */
export interface Declared {
  readonly workflow: string;
  readonly name: string;
  readonly kind: OperationKind;
  /** `null`: none was given. */
  readonly class: EffectClass | null;
  readonly guard: "detect" | "idempotent" | "natural" | "none";
  readonly recovery: StepPolicy["recovery"];
  /** A key of the business. */
  readonly hasKey: boolean;
  readonly canUndo: boolean;
  readonly needsApproval: boolean;
}

/** What plays have seen. */
export interface Operation {
  readonly declared: Declared;
  /** Runs and keys under which its function was run. */
  readonly places: Set<string>;
  /** What it did outside. */
  readonly did: Set<string>;
  /** What a second run did again. */
  readonly again: Set<string>;
  readonly detectorFailures: DetectorFailure[];
  /** Whether a recorder was there when its function ran. */
  isWatched: boolean;
  /** Whether it asked for its key, or gave the outside one of its own. */
  usedKey: boolean;
  isRepeated: boolean;
  repeatError: string | null;
  isDetectorAsked: boolean;
  isUndone: boolean;
  readonly undoneAgain: Set<string>;
  undoError: string | null;
}

export class Operations {
  readonly #known = new Map<string, Operation>();

  get all(): readonly Operation[] {
    return [...this.#known.values()];
  }

  of(declared: Declared): Operation {
    const identity = JSON.stringify(declared);
    const known = this.#known.get(identity);
    if (known !== undefined) return known;
    const operation: Operation = {
      declared,
      places: new Set(),
      did: new Set(),
      again: new Set(),
      detectorFailures: [],
      isWatched: false,
      usedKey: false,
      isRepeated: false,
      repeatError: null,
      isDetectorAsked: false,
      isUndone: false,
      undoneAgain: new Set(),
      undoError: null,
    };
    this.#known.set(identity, operation);
    return operation;
  }
}
