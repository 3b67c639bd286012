import type { Clock } from "../base/clock.ts";

/** Whoever wants to be woken at a time. */
export interface Sleeper {
  evaluate(): void;
}

/** One timer for all passes of a worker: a timer of its own would cost each run more than most of its steps. */
export class Alarms {
  readonly #clock: Clock;
  readonly #due = new Map<Sleeper, number>();
  #next: { readonly due: number; readonly forget: () => void } | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Wakes `sleeper` at `due`, and no longer at an earlier choice. */
  set(sleeper: Sleeper, due: number | null): void {
    if (due === null) return this.clear(sleeper);
    if (this.#due.get(sleeper) === due) return;
    this.#due.set(sleeper, due);
    if (this.#next === null || due < this.#next.due) this.#arm(due);
  }

  clear(sleeper: Sleeper): void {
    if (!this.#due.delete(sleeper) || this.#due.size > 0) return;
    this.#next?.forget();
    this.#next = null;
  }

  #arm(due: number): void {
    this.#next?.forget();
    this.#next = { due, forget: this.#clock.at(due, () => this.#ring()) };
  }

  #ring(): void {
    const now = this.#clock.now();
    const woken: Sleeper[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const [sleeper, due] of this.#due) {
      if (due <= now) woken.push(sleeper);
      else if (due < next) next = due;
    }
    for (const sleeper of woken) this.#due.delete(sleeper);
    this.#next = null;
    if (next < Number.POSITIVE_INFINITY) this.#arm(next);
    for (const sleeper of woken) sleeper.evaluate();
  }
}
