// Turns
// Outcomes reach bodies one per turn. A turn opens and closes in two immediates of one check phase with all microtasks between
// them, so nothing that a body awaits outside the engine can land inside it (P4). Runs do not see each other: those that have an outcome
// at the same moment share the pair.
import type { Host } from "./host.ts";

export interface TurnTaker {
  openTurn(): void;
  closeTurn(): void;
}

export class Turns {
  readonly #host: Host;
  readonly #closed: () => void;
  #waiting: TurnTaker[] = [];
  #open: TurnTaker[] = [];
  #isOpen = false;

  /** `closed` is called when all turns of a pair are over: what they have to write is there. */
  constructor(host: Host, closed: () => void) {
    this.#host = host;
    this.#closed = closed;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Gives `taker` one turn. It asks once for each. */
  request(taker: TurnTaker): void {
    this.#waiting.push(taker);
    if (this.#waiting.length > 1) return;
    this.#host.immediate(() => this.#openAll());
    this.#host.immediate(() => this.#closeAll());
  }

  #openAll(): void {
    this.#open = this.#waiting;
    this.#waiting = [];
    this.#isOpen = true;
    for (const taker of this.#open) taker.openTurn();
  }

  #closeAll(): void {
    const open = this.#open;
    this.#open = [];
    try {
      for (const taker of open) taker.closeTurn();
    } finally {
      this.#isOpen = false;
      this.#closed();
    }
  }
}
