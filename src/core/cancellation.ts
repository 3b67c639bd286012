// Cancellation
// What a cancel or a passed deadline does to the body of a run. The body has a while to end; then it is closed without it, so that cancelling
// always ends, live and in replay alike (P19).
import { cancelError } from "./endings.ts";
import type { Cancelling } from "./journal.ts";
import { LIMITS } from "./limits.ts";
import type { Pass } from "./pass.ts";

export class Cancellation {
  readonly #pass: Pass;
  #controller: AbortController | null = null;
  #forgetGrace: (() => void) | null = null;
  cancelling: Cancelling | null = null;

  constructor(pass: Pass) {
    this.#pass = pass;
  }

  /** Made on demand: most bodies never look at it. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.cancelling !== null) this.#controller.abort(cancelError(this.#pass.id, this.cancelling));
    return this.#controller.signal;
  }

  /** Rejects what is pending, and tells the body; new calls are rejected from here on. What is undone goes on (CO4). */
  begin(cancelling: Cancelling): void {
    this.cancelling = cancelling;
    if (this.#pass.body.isCompensating) return;
    const error = cancelError(this.#pass.id, cancelling);
    this.#pass.steps.forgetOutcomes();
    this.#pass.calls.rejectAll(error);
    this.#controller?.abort(error);
  }

  /** Calls `close` unless the run is over by then. */
  giveGrace(close: (error: unknown) => void): void {
    const { id, ports } = this.#pass;
    this.#forgetGrace = ports.leaseClock.after(LIMITS.cancelGraceMs, () => {
      if (this.cancelling !== null) close(cancelError(id, this.cancelling));
    });
  }

  forget(): void {
    this.#forgetGrace?.();
    this.#forgetGrace = null;
  }
}
