import { assert } from "./assert.ts";

export interface Backoff {
  /** The longest wait after the first attempt. */
  readonly baseMs: number;
  /** By how much it grows with each further attempt. */
  readonly factor: number;
  /** What it never exceeds. */
  readonly capMs: number;
  /**
   * Full jitter, the default: anything from nothing to the longest wait, evenly. A thousand runs that failed together
   * then do not come back together (S4-32). `false` waits the full time: 1, 2, 4 s (S4-29).
   */
  readonly jitter?: boolean;
}

export const defaultBackoff: Backoff = { baseMs: 1000, factor: 2, capMs: 60_000, jitter: true };

/** How long to wait after failed attempt number `attempt`, the first being 1. */
export function backoffMs(attempt: number, backoff: Backoff, random: () => number): number {
  const { baseMs, factor, capMs, jitter = true } = backoff;
  assert(Number.isInteger(attempt) && attempt >= 1, `attempt counts from 1, got ${attempt}`);
  assert(baseMs >= 0 && factor >= 1 && capMs >= 0, "a backoff never shrinks and is never negative");
  // Far attempts grow to Infinity, which the cap takes care of, unless the base is 0: 0 * Infinity is NaN.
  const longest = baseMs === 0 ? 0 : Math.round(Math.min(capMs, baseMs * factor ** (attempt - 1)));
  return jitter ? Math.floor(random() * (longest + 1)) : longest;
}
