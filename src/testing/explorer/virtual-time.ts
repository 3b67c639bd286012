// Virtual time
// Moves when nothing can happen without it: to whatever somebody has asked for, otherwise to the next moment at which something is due.
import type { ManualClock } from "../../base/clock.ts";
import { roundsUntil } from "./stillness.ts";

/** Long, so that few heartbeats are needed to let it run out. */
export const LEASE_MS = 60_000;
/** Heartbeats come three times a lease: steps of the lease clock are no longer than that. */
export const LEASE_STEP_MS: number = LEASE_MS / 3;
/** Longer than any watchdog of the engine: what has not moved by then waits for something else. */
const WATCHDOG_MS = 65_000;

interface Waiter {
  /** Nobody serves the client of a process that is dead, or frozen: whatever it asks is not answered. */
  isPresent(): boolean;
  /** Whether it has what it waits for. */
  isServed(): boolean | Promise<boolean>;
  /** Moves time on for it; false: that leads to nothing. */
  move(): boolean;
  resolve(): void;
  reject(error: unknown): void;
}

/** Time as one client sees it. */
export interface ClientTime {
  /** Resolves when everything that needs no time has happened. */
  settled(): Promise<void>;
  /** Moves wall time on by `ms`, stopping at every moment at which something is due. */
  advance(ms: number): Promise<void>;
  /** Moves wall time from one due moment to the next until the condition holds. */
  until(condition: () => boolean | Promise<boolean>): Promise<void>;
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
    return this.#next !== undefined;
  }

  get #next(): Waiter | undefined {
    return this.#waiters.find((waiter) => waiter.isPresent());
  }

  /** As a client sees it that is served while it `isPresent`. */
  for(isPresent: () => boolean): ClientTime {
    const wait = (isServed: Waiter["isServed"], move: Waiter["move"]) =>
      new Promise<void>((resolve, reject) => void this.#waiters.push({ isPresent, isServed, move, resolve, reject }));
    return {
      settled: () =>
        wait(
          () => true,
          () => true,
        ),
      advance: (ms) => {
        const end = this.#clock.now() + ms;
        const isOver = () => this.#clock.now() >= end && this.#clock.nextDue() > end;
        return wait(isOver, () => this.#moveTo(end));
      },
      until: (condition) => wait(condition, () => this.#move()),
    };
  }

  /** To be called when everything is still. False: nothing will ever happen again by itself. */
  async step(): Promise<boolean> {
    return (await this.serve()) || this.move();
  }

  /** To be called when everything is still. Whether somebody had waited for just that: then things go on without time. */
  async serve(): Promise<boolean> {
    const waiter = this.#next;
    if (waiter === undefined) return false;
    try {
      const isServed = await answerOf(waiter);
      if (isServed !== true) return isServed === null;
      waiter.resolve();
    } catch (error) {
      waiter.reject(error);
    }
    this.#remove(waiter);
    return true;
  }

  /** Moves on for whoever waits, or to what is due next. False: nothing will ever happen again by itself. */
  move(): boolean {
    const waiter = this.#next;
    if (waiter === undefined) return this.#move();
    if (waiter.move()) return true;
    waiter.resolve();
    this.#remove(waiter);
    return true;
  }

  #remove(waiter: Waiter): void {
    this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
  }

  /** To the next moment at which something is due, and no further than the end. */
  #moveTo(end: number): boolean {
    if (this.#clock.nextDue() <= end) return this.#clock.skip();
    this.#clock.advance(end - this.#clock.now());
    return true;
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

/** Whether it is served; `null` if its process dies or freezes over the question. */
async function answerOf({ isServed, isPresent }: Waiter): Promise<boolean | null> {
  const asked = isServed();
  if (typeof asked === "boolean") return asked;
  let isAnswered = false;
  const answered = Promise.resolve(asked).finally(() => {
    isAnswered = true;
  });
  answered.catch(() => {});
  await roundsUntil(() => isAnswered || !isPresent());
  return isAnswered ? answered : null;
}
