import { encodePayload } from "./draft.ts";
import { LIMITS } from "./limits.ts";
import type { Pass } from "./pass.ts";

/** The latest progress of a run: written with the next commit, and by itself at most every so often. */
export class Progress {
  readonly #pass: Pass;
  #text: string | null = null;

  constructor(pass: Pass) {
    this.#pass = pass;
  }

  report(value: unknown): void {
    // What cannot be recorded is refused in replay as well, or the body would take another way there.
    const text = encodePayload(value, "progress");
    if (!this.#pass.isLive || this.#pass.isClosed) return;
    const { ports } = this.#pass;
    const { redactor } = this.#pass;
    if (this.#text === null) ports.leaseClock.after(LIMITS.progressEveryMs, () => ports.dirty(this.#pass));
    this.#text = redactor === null ? text : redactor.value(text);
  }

  /** Puts it into the row of the commit that is being made. */
  write(): void {
    if (this.#text === null) return;
    this.#pass.draft.row({ progress: this.#text });
    this.#text = null;
  }
}
