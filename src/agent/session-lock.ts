// The lock of a session
// Synchronous code needs none. What waits for something in the middle does: a transaction that is undone would take along what others did
// meanwhile. Whoever holds the lock may take it again further down.
import { AsyncLocalStorage } from "node:async_hooks";
import { PawlError } from "../base/errors.ts";

/** The locks that the code at hand holds, each by what it was given when it took it. */
const held = new AsyncLocalStorage<readonly symbol[]>();

export class SessionLock {
  #holder: symbol | null = null;
  readonly #waiting: (() => void)[] = [];

  /** Calls `work` when it is its turn. */
  async locked<R>(work: () => R | Promise<R>): Promise<R> {
    if (this.#isMine()) return work();
    while (this.#holder !== null) await new Promise<void>((go) => this.#waiting.push(go));
    const token = this.#take();
    try {
      return await withToken(token, work);
    } finally {
      this.#release();
    }
  }

  /** Calls `work` at once and `settle` as soon as it is over, with what it threw or gave. Refused while others hold the lock. */
  exclusive<R>(work: () => R, settle: (outcome: { readonly threw: boolean; readonly value: unknown }) => void): R {
    const isNested = this.#isMine();
    if (!isNested && this.#holder !== null)
      throw new PawlError(
        "invalid_argument",
        "A transaction of a session cannot begin while another one, or a locked section, is under way. Wait for it with session.locked(() => session.transaction(…)), or work on a clone.",
      );
    const end = (threw: boolean, value: unknown) => {
      settle({ threw, value });
      if (!isNested) this.#release();
    };
    return isNested ? observed(work, end) : withToken(this.#take(), () => observed(work, end));
  }

  #isMine(): boolean {
    return this.#holder !== null && (held.getStore()?.includes(this.#holder) ?? false);
  }

  #take(): symbol {
    this.#holder = Symbol("session lock");
    return this.#holder;
  }

  #release(): void {
    this.#holder = null;
    this.#waiting.shift()?.();
  }
}

function withToken<R>(token: symbol, work: () => R): R {
  return held.run([...(held.getStore() ?? []), token], work);
}

function observed<R>(work: () => R, end: (threw: boolean, value: unknown) => void): R {
  let result: R;
  try {
    result = work();
  } catch (error) {
    end(true, error);
    throw error;
  }
  if (!(result instanceof Promise)) {
    end(false, result);
    return result;
  }
  return result.then(
    (value) => {
      end(false, value);
      return value;
    },
    (error: unknown) => {
      end(true, error);
      throw error;
    },
  ) as R;
}
