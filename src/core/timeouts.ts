import type { Host } from "./host.ts";

/** Something that gets a timer unless it is over by then. */
export interface Armable {
  readonly isOver: boolean;
  arm(): void;
}

/** Most short steps are over a moment after they began and need no timer. One look serves all that began together. */
export class Timeouts {
  readonly #host: Host;
  readonly #look = () => this.#armFresh();
  #fresh: Armable[] = [];

  constructor(host: Host) {
    this.#host = host;
  }

  add(attempt: Armable): void {
    if (this.#fresh.push(attempt) === 1) this.#host.immediate(this.#look);
  }

  #armFresh(): void {
    const fresh = this.#fresh;
    this.#fresh = [];
    for (const attempt of fresh) if (!attempt.isOver) attempt.arm();
  }
}
