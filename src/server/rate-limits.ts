import type { Clock } from "../base/clock.ts";
import type { Bucket } from "./server-limits.ts";

interface Level {
  tokens: number;
  at: number;
}

/** Whoever has not been seen for long has a full bucket anyway: so many are kept in mind. */
const MAX_KEPT = 10_000;

/** Token buckets by name. */
export class RateLimit {
  readonly #clock: Clock;
  readonly #bucket: Bucket;
  readonly #levels = new Map<string, Level>();

  constructor(clock: Clock, bucket: Bucket) {
    this.#clock = clock;
    this.#bucket = bucket;
  }

  /** Takes one; or says after how many seconds there is one again. */
  take(name: string): number | null {
    const { burst, perSecond } = this.#bucket;
    const now = this.#clock.monotonic();
    const level = this.#levels.get(name) ?? { tokens: burst, at: now };
    const tokens = Math.min(burst, level.tokens + ((now - level.at) / 1000) * perSecond);
    this.#levels.delete(name);
    this.#levels.set(name, { tokens: tokens < 1 ? tokens : tokens - 1, at: now });
    const [oldest] = this.#levels.keys();
    if (this.#levels.size > MAX_KEPT && oldest !== undefined) this.#levels.delete(oldest);
    return tokens < 1 ? Math.max(1, Math.ceil((1 - tokens) / perSecond)) : null;
  }
}
