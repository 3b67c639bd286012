import { type Clock, systemClock } from "../../base/clock.ts";

/**
 * Store time as this process estimates it: its own clock, corrected by how far the database's is away. The answer that took least time says
 * that best, so a slower one counts only when the last good one is old, or wrong.
 */
export class StoreClock implements Clock {
  #offsetMs = 0;
  #roundTripMs = Number.POSITIVE_INFINITY;
  #measuredAt = Number.NEGATIVE_INFINITY;

  /** The database said `time`, between `sentAt` and now by our own wall clock. */
  measured(time: number, sentAt: number): void {
    const now = systemClock.now();
    const roundTripMs = Math.max(0, now - sentAt);
    const isOld = systemClock.monotonic() - this.#measuredAt > 60_000;
    if (roundTripMs > this.#roundTripMs && !isOld && this.#isPossible(time, sentAt, now)) return;
    this.#roundTripMs = roundTripMs;
    this.#measuredAt = systemClock.monotonic();
    this.#offsetMs = Math.round(time - (sentAt + roundTripMs / 2));
  }

  /** The database looked at its clock at some moment in between. If what we take for it then does not fit, one of the clocks was set. */
  #isPossible(time: number, sentAt: number, now: number): boolean {
    return time >= sentAt + this.#offsetMs - 1 && time <= now + this.#offsetMs + 1;
  }

  now(): number {
    return systemClock.now() + this.#offsetMs;
  }

  monotonic(): number {
    return systemClock.monotonic();
  }

  at(time: number, fire: () => void): () => void {
    return systemClock.at(time - this.#offsetMs, fire);
  }

  after(ms: number, fire: () => void): () => void {
    return systemClock.after(ms, fire);
  }
}
