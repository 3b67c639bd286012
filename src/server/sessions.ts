import { createHash, timingSafeEqual } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { newToken, tokenHash, type Who } from "./credentials.ts";

/** Somebody who has signed in with a browser. */
export interface Session {
  readonly who: Who;
  /** What it is kept under: the hash of the cookie. */
  readonly key: string;
  /** What every request that changes something has to bring along. */
  readonly csrf: string;
}

/** One that has just begun; `id` goes into the cookie. */
export interface NewSession extends Session {
  readonly id: string;
}

interface Kept extends Session {
  usedAt: number;
}

/** The sessions of browsers. They live in memory: after a restart of the server people sign in again. */
export class Sessions {
  readonly #clock: Clock;
  readonly #max: number;
  readonly #idleMs: number;
  /** By their keys: whoever reads the memory of the server still cannot sign in. */
  readonly #kept = new Map<string, Kept>();

  constructor(
    clock: Clock,
    { sessions, sessionIdleMs }: { readonly sessions: number; readonly sessionIdleMs: number },
  ) {
    this.#clock = clock;
    this.#max = sessions;
    this.#idleMs = sessionIdleMs;
  }

  /** Begins a session. The one that was unused for longest makes room. */
  create(who: Who): NewSession {
    const id = newToken();
    const session: Kept = { who, key: tokenHash(id), csrf: newToken(), usedAt: this.#clock.monotonic() };
    this.#kept.set(session.key, session);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > this.#max && oldest !== undefined) this.#kept.delete(oldest);
    return { ...session, id };
  }

  find(id: string): Session | null {
    const key = tokenHash(id);
    const session = this.#kept.get(key);
    if (session === undefined) return null;
    this.#kept.delete(key);
    if (this.#isIdle(session)) return null;
    session.usedAt = this.#clock.monotonic();
    // Those that are used move to the end: the first is the one to go.
    this.#kept.set(key, session);
    return session;
  }

  /** Whether it goes on. To ask is not to use it. */
  isOpen({ key }: Pick<Session, "key">): boolean {
    const session = this.#kept.get(key);
    return session !== undefined && !this.#isIdle(session);
  }

  end(id: string): void {
    this.#kept.delete(tokenHash(id));
  }

  #isIdle({ usedAt }: Kept): boolean {
    return this.#clock.monotonic() - usedAt > this.#idleMs;
  }
}

/** Whether these are the same text, in a time that does not tell how much of it is. */
export function isSameSecret(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
