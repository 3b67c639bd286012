import type { Clock } from "../base/clock.ts";

export interface Listener {
  /** Resolves when something may have changed since the last call. */
  next(): Promise<void>;
  stop(): void;
}

/** Wakes whoever waits for something to change about a run: told in this process, hinted from outside, or by polling. */
export class Changes {
  readonly #clock: Clock;
  readonly #pollMs: number;
  readonly #forAll = new Listeners();
  readonly #forEnds = new Listeners();

  constructor(clock: Clock, pollMs: number) {
    this.#clock = clock;
    this.#pollMs = pollMs;
  }

  /** Something of this run became durable here. */
  tell(run: string): void {
    this.#forAll.wake(run);
  }

  tellEnd(run: string): void {
    this.#forAll.wake(run);
    this.#forEnds.wake(run);
  }

  /** Any run may have changed. */
  tellAll(): void {
    this.#forAll.wakeAll();
    this.#forEnds.wakeAll();
  }

  isEndAwaited(run: string): boolean {
    return this.#forEnds.has(run);
  }

  listen(run: string): Listener {
    return this.#listen(this.#forAll, run);
  }

  /** For those who care for the end alone: a busy run does not wake them with every commit. */
  listenForEnd(run: string): Listener {
    return this.#listen(this.#forEnds, run);
  }

  /** Listening starts before the caller looks, so that nothing falls between look and wait. */
  #listen(listeners: Listeners, run: string): Listener {
    let hasChanged = false;
    let wake: (() => void) | null = null;
    const listener = () => {
      hasChanged = true;
      wake?.();
    };
    listeners.add(run, listener);
    const next = async () => {
      if (!hasChanged) {
        await new Promise<void>((resolve) => {
          const forget = this.#clock.after(this.#pollMs, resolve);
          wake = () => {
            forget();
            resolve();
          };
        });
      }
      hasChanged = false;
      wake = null;
    };
    return { next, stop: () => listeners.remove(run, listener) };
  }
}

class Listeners {
  readonly #byRun = new Map<string, Set<() => void>>();

  has(run: string): boolean {
    return this.#byRun.has(run);
  }

  add(run: string, listener: () => void): void {
    const listeners = this.#byRun.get(run);
    if (listeners === undefined) this.#byRun.set(run, new Set([listener]));
    else listeners.add(listener);
  }

  remove(run: string, listener: () => void): void {
    const listeners = this.#byRun.get(run);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.#byRun.delete(run);
  }

  wake(run: string): void {
    const listeners = this.#byRun.get(run);
    if (listeners !== undefined) for (const listener of listeners) listener();
  }

  wakeAll(): void {
    for (const run of [...this.#byRun.keys()]) this.wake(run);
  }
}
