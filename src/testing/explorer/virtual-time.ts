// Virtual time
// Moves when nothing can happen without it: to whatever somebody has asked for, otherwise to the next moment at which something is due.
import type { ManualClock } from "../../base/clock.ts";

/** Long, so that few heartbeats are needed to let it run out. */
export const LEASE_MS = 60_000;
/** Heartbeats come three times a lease: steps of the lease clock are no longer than that. */
export const LEASE_STEP_MS: number = LEASE_MS / 3;
/** Longer than any watchdog of the engine: what has not moved by then waits for something else. */
const WATCHDOG_MS = 65_000;

interface Waiter {
  /** Whether it has what it waits for; it may move the clock. */
  isServed(): boolean | Promise<boolean>;
  resolve(): void;
  reject(error: unknown): void;
}

export class VirtualTime {
  readonly #clock: ManualClock;
  readonly #leaseClock: ManualClock;
  readonly #waiters: Waiter[] = [];
  /** How far the lease clock has gone since wall time moved. */
  #idleMs = 0;

  constructor(clock: ManualClock, leaseClock: ManualClock) {
    this.#clock = clock;
    this.#leaseClock = leaseClock;
  }

  get hasWaiters(): boolean {
    return this.#waiters.length > 0;
  }

  /** Resolves when everything that needs no time has happened. */
  settled(): Promise<void> {
    return this.#wait(() => true);
  }

  /** Moves wall time on by `ms`, stopping at every moment at which something is due. */
  advance(ms: number): Promise<void> {
    const end = this.#clock.now() + ms;
    return this.#wait(() => {
      if (this.#clock.nextDue() <= end) {
        this.#clock.skip();
        return false;
      }
      const rest = end - this.#clock.now();
      if (rest <= 0) return true;
      this.#clock.advance(rest);
      return false;
    });
  }

  /** Moves wall time from one due moment to the next until the condition holds. */
  until(condition: () => boolean | Promise<boolean>): Promise<void> {
    return this.#wait(async () => (await condition()) || !this.#move());
  }

  /** To be called when everything is still. False: nothing will ever happen again by itself. */
  async step(): Promise<boolean> {
    const [waiter] = this.#waiters;
    if (waiter === undefined) return this.#move();
    try {
      if (!(await waiter.isServed())) return true;
      waiter.resolve();
    } catch (error) {
      waiter.reject(error);
    }
    this.#waiters.shift();
    return true;
  }

  #wait(isServed: Waiter["isServed"]): Promise<void> {
    return new Promise((resolve, reject) => void this.#waiters.push({ isServed, resolve, reject }));
  }

  /** Watchdogs go first where wall time would move far: a run that is stuck must not pass for one that sleeps. */
  #move(): boolean {
    const due = this.#clock.nextDue();
    if (due - this.#clock.now() > WATCHDOG_MS && this.#idleMs < WATCHDOG_MS) {
      this.#idleMs += LEASE_STEP_MS;
      this.#leaseClock.advance(LEASE_STEP_MS);
      return true;
    }
    this.#idleMs = 0;
    return this.#clock.skip();
  }
}
