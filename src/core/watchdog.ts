import { stallOf } from "./divergence.ts";
import type { Entry } from "./journal.ts";
import { LIMITS } from "./limits.ts";
import type { Pass } from "./pass.ts";

/** A body that never issues a recorded call may be slow in something of its own, but not for ever (P3). */
export class Watchdog {
  readonly #pass: Pass;
  #forget: (() => void) | null = null;

  constructor(pass: Pass) {
    this.#pass = pass;
  }

  /** Parks the run unless replay gets past this entry in time. */
  watch(recorded: Entry): void {
    this.forget();
    const { id, ports, replay } = this.#pass;
    this.#forget = ports.leaseClock.after(LIMITS.replayStallMs, () => {
      if (replay.cursor.peek()?.entry === recorded) this.#pass.park(stallOf(id, recorded));
    });
  }

  forget(): void {
    this.#forget?.();
    this.#forget = null;
  }
}
