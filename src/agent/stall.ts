// No progress
// An agent that makes the same refused call again and again, or goes round in a circle, will not get anywhere. What is compared are recorded values
// alone, so replay stops where the run was stopped.
import { PawlError } from "../base/errors.ts";
import { readableJson } from "../base/storable.ts";

/** When an agent is taken to be stuck. */
export interface StallOptions {
  /** How often in a row the same call may be refused. Default 3. */
  readonly repeats?: number;
  /** How many rounds in a row may make the same calls and get the same answers. Default 10. */
  readonly same?: number;
  /** How many rounds in a row may have nothing but refused calls. Default 10. */
  readonly refused?: number;
}

/** A call and what became of it. */
export interface Tried {
  readonly name: string;
  readonly args: unknown;
  readonly message: string;
  readonly isRefused: boolean;
}

export class Stall {
  readonly #limits: Required<StallOptions>;
  readonly #refusals = new Map<string, number>();
  #refusedRounds = 0;
  #last = "";
  #same = 0;

  constructor({ repeats = 3, same = 10, refused = 10 }: StallOptions) {
    for (const [field, limit] of Object.entries({ repeats, same, refused }))
      if (!Number.isSafeInteger(limit) || limit < 1)
        throw new PawlError(
          "invalid_argument",
          `\`noProgress.${field}\` is ${limit}. Give a whole number of at least 1, or \`noProgress: false\`.`,
          { fields: { field: `noProgress.${field}` } },
        );
    this.#limits = { repeats, same, refused };
  }

  /** Takes a round in; says why it is enough, or `null`. */
  after(round: readonly Tried[]): string | null {
    return this.#repeated(round) ?? this.#allRefused(round) ?? this.#circle(round);
  }

  #repeated(round: readonly Tried[]): string | null {
    const before = new Map(this.#refusals);
    this.#refusals.clear();
    for (const { name, args, isRefused } of round) {
      if (!isRefused) continue;
      const call = String(readableJson([name, args]));
      const times = (this.#refusals.get(call) ?? before.get(call) ?? 0) + 1;
      this.#refusals.set(call, times);
      if (times >= this.#limits.repeats)
        return `no_progress: the same call of "${name}" was refused ${times} times in a row`;
    }
    return null;
  }

  #allRefused(round: readonly Tried[]): string | null {
    this.#refusedRounds = round.every(({ isRefused }) => isRefused) ? this.#refusedRounds + 1 : 0;
    if (this.#refusedRounds < this.#limits.refused) return null;
    return `no_progress: ${this.#refusedRounds} rounds in a row had nothing but refused calls`;
  }

  #circle(round: readonly Tried[]): string | null {
    const shape = String(readableJson(round.map(({ name, args, message }) => [name, args, message])));
    this.#same = shape === this.#last ? this.#same + 1 : 1;
    this.#last = shape;
    if (this.#same < this.#limits.same) return null;
    return `no_progress: ${this.#same} rounds in a row made the same calls and got the same answers`;
  }
}
