import type { Clock } from "../base/clock.ts";
import type { Armable, Timeouts } from "./timeouts.ts";

/** Whoever wants to be woken at a time. */
export interface Sleeper {
  evaluate(): void;
}

/** One timer for all passes of a worker: a timer of its own would cost each run more than most of its steps. */
export class Alarms implements Armable {
  readonly #clock: Clock;
  readonly #timeouts: Timeouts;
  readonly #due = new Map<Sleeper, number>();
  #next: { readonly due: number; readonly forget: () => void } | null = null;
  #isAsked = false;
  readonly isOver = false;

  constructor(clock: Clock, timeouts: Timeouts) {
    this.#clock = clock;
    this.#timeouts = timeouts;
  }

  /** Wakes `sleeper` at `due`, and no longer at an earlier choice. */
  set(sleeper: Sleeper, due: number | null): void {
    if (due === null) return this.clear(sleeper);
    if (this.#due.get(sleeper) === due) return;
    this.#due.set(sleeper, due);
    if (this.#isAsked || (this.#next !== null && due >= this.#next.due)) return;
    this.#isAsked = true;
    this.#timeouts.add(this);
  }

  clear(sleeper: Sleeper): void {
    if (!this.#due.delete(sleeper) || this.#due.size > 0) return;
    this.#next?.forget();
    this.#next = null;
  }

  /** Rings for what is due by now, and sets the timer to the earliest of the rest. */
  arm(): void {
    this.#isAsked = false;
    this.#next?.forget();
    this.#next = null;
    const now = this.#clock.now();
    const woken: Sleeper[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const [sleeper, due] of this.#due) {
      if (due <= now) woken.push(sleeper);
      else if (due < next) next = due;
    }
    for (const sleeper of woken) this.#due.delete(sleeper);
    if (next < Number.POSITIVE_INFINITY) this.#next = { due: next, forget: this.#clock.at(next, () => this.arm()) };
    for (const sleeper of woken) sleeper.evaluate();
  }
}
