import { createHash, timingSafeEqual } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { newToken, tokenHash, type Who } from "./credentials.ts";

/** Somebody who has signed in with a browser. */
export interface Session {
  readonly who: Who;
  /** What every request that changes something has to bring along. */
  readonly csrf: string;
}

interface Kept extends Session {
  usedAt: number;
}

/** The sessions of browsers. They live in memory: after a restart of the server people sign in again. */
export class Sessions {
  readonly #clock: Clock;
  readonly #max: number;
  readonly #idleMs: number;
  /** By the hash of the cookie: whoever reads the memory of the server still cannot sign in. */
  readonly #kept = new Map<string, Kept>();

  constructor(
    clock: Clock,
    { sessions, sessionIdleMs }: { readonly sessions: number; readonly sessionIdleMs: number },
  ) {
    this.#clock = clock;
    this.#max = sessions;
    this.#idleMs = sessionIdleMs;
  }

  /** Begins a session; `id` goes into the cookie. The one that was unused for longest makes room. */
  create(who: Who): Session & { readonly id: string } {
    const id = newToken();
    const session: Kept = { who, csrf: newToken(), usedAt: this.#clock.monotonic() };
    this.#kept.set(tokenHash(id), session);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > this.#max && oldest !== undefined) this.#kept.delete(oldest);
    return { ...session, id };
  }

  find(id: string): Session | null {
    const key = tokenHash(id);
    const session = this.#kept.get(key);
    if (session === undefined) return null;
    const now = this.#clock.monotonic();
    this.#kept.delete(key);
    if (now - session.usedAt > this.#idleMs) return null;
    session.usedAt = now;
    // Those that are used move to the end: the first is the one to go.
    this.#kept.set(key, session);
    return session;
  }

  end(id: string): void {
    this.#kept.delete(tokenHash(id));
  }
}

/** Whether these are the same text, in a time that does not tell how much of it is. */
export function isSameSecret(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
