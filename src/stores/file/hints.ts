// Hints: what this process has done itself is told at once, letters of others are looked for now and then.
import type { Clock } from "../../base/clock.ts";
import { ANYTHING, type Hint } from "../../core/store.ts";
import { afterQuietly } from "../quiet-timer.ts";

const EVERY_MS = 100;

export class Hints {
  readonly #hasMail: () => boolean;
  readonly #clock: Clock;
  readonly #listeners = new Set<(hint: Hint) => void>();
  #stop: (() => void) | null = null;

  constructor(hasMail: () => boolean, clock: Clock) {
    this.#hasMail = hasMail;
    this.#clock = clock;
  }

  listen(listener: (hint: Hint) => void): () => void {
    const own = (hint: Hint) => listener(hint);
    this.#listeners.add(own);
    if (this.#stop === null) this.#schedule();
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size === 0) this.stop();
    };
  }

  stop(): void {
    this.#stop?.();
    this.#stop = null;
  }

  /** Only what may give another engine something to do is worth a hint; a claim never is, or two engines would wake each other for ever. */
  tellSoon(): void {
    for (const listener of this.#listeners) queueMicrotask(() => listener(ANYTHING));
  }

  #schedule(): void {
    this.#stop = afterQuietly(this.#clock, EVERY_MS, () => {
      this.#schedule();
      if (this.#hasMail()) this.tellSoon();
    });
  }
}
