import type { Clock } from "../base/clock.ts";

/** A background duty: runs `body` every so often, and sooner when asked; never twice at once. */
export class Loop {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #body: () => Promise<void>;
  #forget: () => void = () => {};
  #running: Promise<void> | null = null;
  #again = false;
  #isStopped = true;

  constructor(clock: Clock, everyMs: number, body: () => Promise<void>) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#body = body;
  }

  start(): void {
    this.#isStopped = false;
    this.#schedule();
  }

  /** Resolves when the body, if it is running, has ended; it does not run again. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#again = false;
    this.#forget();
    await this.#running;
  }

  /** Runs the body now, or once more after the run under way; resolves when that is done. */
  tick(): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    if (this.#running !== null) {
      this.#again = true;
      return this.#running;
    }
    this.#forget();
    this.#running = this.#run();
    return this.#running;
  }

  async #run(): Promise<void> {
    try {
      do {
        this.#again = false;
        await this.#body();
      } while (this.#again);
    } finally {
      this.#running = null;
      if (!this.#isStopped) this.#schedule();
    }
  }

  #schedule(): void {
    this.#forget = this.#clock.after(this.#everyMs, () => void this.tick());
  }
}
