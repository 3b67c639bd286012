import type { Clock } from "../base/clock.ts";

/** Wakes whoever waits for something to change about a run: told in this process, hinted from outside, or by polling. */
export class Changes {
  readonly #clock: Clock;
  readonly #pollMs: number;
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(clock: Clock, pollMs: number) {
    this.#clock = clock;
    this.#pollMs = pollMs;
  }

  /** This run has changed. */
  tell(run: string): void {
    const listeners = this.#waiting.get(run);
    if (listeners !== undefined) for (const wake of listeners) wake();
  }

  /** Any run may have changed. */
  tellAll(): void {
    for (const run of [...this.#waiting.keys()]) this.tell(run);
  }

  isListened(run: string): boolean {
    return this.#waiting.has(run);
  }

  /** Starts listening before the caller looks, so that nothing falls between look and wait. */
  listen(run: string): { next(): Promise<void>; stop(): void } {
    let changed = false;
    let wake: (() => void) | null = null;
    const listener = () => {
      changed = true;
      wake?.();
    };
    const listeners = this.#waiting.get(run) ?? new Set();
    this.#waiting.set(run, listeners.add(listener));
    const next = async () => {
      if (!changed) {
        await new Promise<void>((resolve) => {
          const forget = this.#clock.after(this.#pollMs, resolve);
          wake = () => {
            forget();
            resolve();
          };
        });
      }
      changed = false;
      wake = null;
    };
    const stop = () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#waiting.delete(run);
    };
    return { next, stop };
  }
}
