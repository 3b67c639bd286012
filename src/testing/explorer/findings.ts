import type { CrashPoint } from "./crash-point.ts";
import type { CrashFailure, CrashRepeat } from "./report.ts";
import type { Variation } from "./variation.ts";
import { differences, type Fault, type FaultKind, faultsOf, type Outcome, repeatsIn } from "./verdict.ts";

/** Failures are kept up to here: a workflow that is wrong everywhere is told so often enough. */
const MOST_FAILURES = 2000;

/** Where nothing went wrong from outside. */
export const NO_POINT: CrashPoint = { n: 0, kind: "undisturbed", label: "without any crash" };

/** Gathers what the histories of an exploration show. */
export class Findings {
  readonly failures: CrashFailure[] = [];
  readonly #repeats = new Map<string, CrashRepeat>();
  readonly #undisturbed: Outcome;
  readonly #variation: Variation;

  constructor(undisturbed: Outcome, variation: Variation) {
    this.#undisturbed = undisturbed;
    this.#variation = variation;
  }

  get repeats(): readonly CrashRepeat[] {
    return [...this.#repeats.values()];
  }

  has(kind: FaultKind): boolean {
    return this.failures.some((failure) => failure.kind === kind);
  }

  /** Faults that show without any crash. */
  withoutCrash(faults: readonly Fault[]): void {
    for (const fault of faults) this.failures.push({ point: NO_POINT, mode: "kill", ...fault });
  }

  /** What of a history differs from the undisturbed one, apart from what steps that vary explain. */
  compare(outcome: Outcome): readonly Fault[] {
    return differences(outcome, this.#undisturbed, this.#variation);
  }

  add(outcome: Outcome, differing: readonly Fault[]): void {
    const { world } = outcome.ending;
    const [first, second] = world.strikes;
    for (const { step, key, times, input, usedKey } of repeatsIn(world)) {
      const known = this.#repeats.get(key);
      const repeat = { step, key, times, input, usedKey };
      if (known === undefined || known.times < times || (known.usedKey && !usedKey)) this.#repeats.set(key, repeat);
    }
    if (first === undefined || this.failures.length >= MOST_FAILURES) return;
    for (const fault of [...faultsOf(outcome), ...differing]) {
      const { point, mode } = first;
      this.failures.push({
        point: plain(point),
        mode,
        ...(second === undefined ? {} : { second: plain(second.point) }),
        ...fault,
      });
    }
  }
}

/** A point as people see it, without what the explorer keeps with it. */
export function plain({ n, kind, label }: CrashPoint): CrashPoint {
  return { n, kind, label };
}
