/**
 * Walks every way through a piece of code that makes choices, without knowing in advance how many there are: each round repeats the choices
 * of the last one up to the latest that has an untried branch, and takes that.
 *
 * ```ts
 * const choices = new Choices();
 * while (choices.next()) explore((count) => choices.pick(count));
 * ```
 */
export class Choices {
  readonly #taken: { branch: number; readonly count: number }[] = [];
  #position = 0;
  #isFirst = true;

  /** Begins the next round; false when every way has been walked. */
  next(): boolean {
    this.#position = 0;
    if (this.#isFirst) {
      this.#isFirst = false;
      return true;
    }
    for (let last = this.#taken.at(-1); last !== undefined; last = this.#taken.at(-1)) {
      if (++last.branch < last.count) return true;
      this.#taken.pop();
    }
    return false;
  }

  /** One of `count` branches, counted from 0. */
  pick(count: number): number {
    const known = this.#taken[this.#position++];
    // A way that is not the same the second time has fewer branches here: any of them will do.
    if (known !== undefined) return Math.min(known.branch, count - 1);
    this.#taken.push({ branch: 0, count });
    return 0;
  }
}
