import type { Clock } from "../base/clock.ts";

/** How a run ended: its output, or its error, as recorded. */
export interface RunEnd {
  readonly ok: boolean;
  readonly text: string;
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
    this.#forAll.wake(run, null);
  }

  /** The run has left this process's memory: it ended, or whoever waits for its end must look elsewhere from now on. */
  tellLeft(run: string, end: RunEnd | null): void {
    if (end !== null) this.#forAll.wake(run, end);
    this.#forEnds.wake(run, end);
  }

  /** These may have changed elsewhere; `null`: any may have. */
  tellHinted(runs: readonly string[] | null): void {
    if (runs === null) return this.tellAll();
    for (const run of runs) {
      this.#forAll.wake(run, null);
      this.#forEnds.wake(run, null);
    }
  }

  /** Any run may have changed. */
  tellAll(): void {
    this.#forAll.wakeAll();
    this.#forEnds.wakeAll();
  }

  listen(run: string): Listener {
    return new Listener(this.#forAll, run, this.#clock, this.#pollMs);
  }

  /** For those who care for the end alone: a busy run does not wake them with every commit. */
  listenForEnd(run: string): Listener {
    return new Listener(this.#forEnds, run, this.#clock, this.#pollMs);
  }
}

/** Listening starts before the caller looks, so that nothing falls between look and wait. */
export class Listener {
  readonly #listeners: Listeners;
  readonly #run: string;
  readonly #clock: Clock;
  readonly #pollMs: number;
  #hasChanged = false;
  #end: RunEnd | null = null;
  #wake: (() => void) | null = null;

  constructor(listeners: Listeners, run: string, clock: Clock, pollMs: number) {
    this.#listeners = listeners;
    this.#run = run;
    this.#clock = clock;
    this.#pollMs = pollMs;
    listeners.add(run, this);
  }

  /**
   * Resolves when something may have changed since the last call, with the end of the run if that was told. Somebody who will surely be told
   * need not poll.
   */
  next({ polls }: { readonly polls: boolean }): Promise<RunEnd | null> {
    if (this.#hasChanged) return Promise.resolve(this.#take());
    return new Promise((resolve) => {
      const forget = polls ? this.#clock.after(this.#pollMs, () => this.tell(null)) : null;
      this.#wake = () => {
        this.#wake = null;
        forget?.();
        resolve(this.#take());
      };
    });
  }

  #take(): RunEnd | null {
    this.#hasChanged = false;
    return this.#end;
  }

  tell(end: RunEnd | null): void {
    this.#hasChanged = true;
    this.#end ??= end;
    this.#wake?.();
  }

  stop(): void {
    this.#listeners.remove(this.#run, this);
  }
}

class Listeners {
  readonly #byRun = new Map<string, Set<Listener>>();

  add(run: string, listener: Listener): void {
    const listeners = this.#byRun.get(run);
    if (listeners === undefined) this.#byRun.set(run, new Set([listener]));
    else listeners.add(listener);
  }

  remove(run: string, listener: Listener): void {
    const listeners = this.#byRun.get(run);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.#byRun.delete(run);
  }

  wake(run: string, end: RunEnd | null): void {
    const listeners = this.#byRun.get(run);
    if (listeners !== undefined) for (const listener of listeners) listener.tell(end);
  }

  wakeAll(): void {
    for (const run of [...this.#byRun.keys()]) this.wake(run, null);
  }
}
