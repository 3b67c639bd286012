// Hints from other processes: SQLite counts the commits of other connections, and asking for that number costs a microsecond.
import type { Clock } from "../../base/clock.ts";
import { ANYTHING, type Hint } from "../../core/store.ts";
import { afterQuietly } from "../quiet-timer.ts";
import type { Connection } from "./connection.ts";

const EVERY_MS = 50;

export class Hints {
  readonly #db: Connection;
  readonly #clock: Clock;
  readonly #listeners = new Set<(hint: Hint) => void>();
  #stop: (() => void) | null = null;
  #seen: number | null = null;

  constructor(db: Connection, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  listen(listener: (hint: Hint) => void): () => void {
    const own = (hint: Hint) => listener(hint);
    this.#listeners.add(own);
    if (this.#stop === null) this.#start();
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size === 0) this.stop();
    };
  }

  stop(): void {
    this.#stop?.();
    this.#stop = null;
  }

  #start(): void {
    this.#seen = this.#version();
    this.#schedule();
  }

  #schedule(): void {
    this.#stop = afterQuietly(this.#clock, EVERY_MS, () => {
      this.#schedule();
      this.#look();
    });
  }

  #look(): void {
    const version = this.#version();
    if (version === null || version === this.#seen) return;
    this.#seen = version;
    this.tell();
  }

  tell(): void {
    for (const listener of [...this.#listeners]) listener(ANYTHING);
  }

  // Whatever is wrong with the file is told by the calls that matter, not by a hint.
  #version(): number | null {
    try {
      return this.#db.get("pragma data_version")?.data_version as number;
    } catch {
      return null;
    }
  }
}
