import { type SeededRandom, seededRandom } from "../../base/random.ts";

/**
 * Every choice of a simulation is drawn here and kept, so that the list of them repeats the simulation. Choice 0 is the quiet one: the oldest
 * event, no delay, no misfortune. A list that is cut short goes on with zeros.
 */
export class Choices {
  readonly taken: number[] = [];
  readonly #given: readonly number[] | null;
  readonly #random: SeededRandom;

  constructor(seed: string, given: readonly number[] | null) {
    this.#random = seededRandom(seed);
    this.#given = given;
  }

  /** A whole number from 0 up to, not including, `count`. */
  below(count: number): number {
    if (count <= 1) return 0;
    const given = this.#given;
    const choice = given === null ? Math.floor(this.#random.next() * count) : (given[this.taken.length] ?? 0) % count;
    this.taken.push(choice);
    return choice;
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return probability > 0 && this.below(1000) >= 1000 - probability * 1000;
  }
}
