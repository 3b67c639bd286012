import type { Continued, EffectPlanned, Entry, Forked, RunStarted } from "../../core/journal.ts";
import { generationSeed, idempotencyKey } from "../../core/seeds.ts";

const UNDO = "/undo";

/**
 * What the outside knows the calls of a run by, as a fold of its journal. A fork keeps the keys of its source for the calls that it inherits, open
 * ones too, and has its own from its fork point on; another generation has others again (P10).
 */
export class OutsideNames {
  readonly #run: string;
  /** By the keys of the present generation. */
  readonly #names = new Map<string, string>();
  #seed: string;

  constructor(run: string) {
    this.#run = run;
    this.#seed = run;
  }

  take({ type, key, payload }: Entry): void {
    switch (type) {
      case "run.started":
        this.#seed = (payload as RunStarted).seed;
        return;
      case "run.continued": {
        const { seed, generation } = payload as Continued;
        this.#names.clear();
        this.#seed = seed ?? generationSeed(this.#run, generation);
        return;
      }
      case "run.forked":
        this.#seed = (payload as Forked).seed;
        return;
      case "effect.planned":
        return void this.#names.set(key as string, (payload as EffectPlanned).key);
      case "step.started":
        return void this.#names.set(key as string, this.of(key as string));
      default:
    }
  }

  of(key: string): string {
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const undone = key.endsWith(UNDO) ? this.#names.get(key.slice(0, -UNDO.length)) : undefined;
    return undone === undefined ? idempotencyKey(this.#seed, key) : `${undone}${UNDO}`;
  }
}
