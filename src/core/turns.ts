// Turns
// Outcomes reach bodies one per turn. A turn opens and closes in two immediates of one check phase with all microtasks between
// them, so nothing that a body awaits outside the engine can land inside it (P4). Runs do not see each other: those that have an outcome
// at the same moment share the pair.
//
// Pairs are asked for ahead: the end of one is when to commit, and what a commit has set off is often over a moment later. It finds its
// turn in the same phase, and the loop goes round once for all of them. Timers and sockets wait meanwhile, so there are few pairs, and where
// many runs are busy, whose turns and commits take their time, the loop goes round for each.
import type { Host } from "./host.ts";

export interface TurnTaker {
  openTurn(): void;
  closeTurn(): void;
}

const PAIRS_AHEAD = 4;
/** After so many turns the pairs that are left are passed over, and what waits gets the next round's. */
const TURNS_IN_A_ROUND = 64;

export class Turns {
  readonly #host: Host;
  readonly #closed: () => void;
  readonly #openAll = () => this.#openWaiting();
  readonly #closeAll = () => this.#closeOpen();
  #waiting: TurnTaker[] = [];
  #open: TurnTaker[] = [];
  #pairs = 0;
  /** Turns that the pairs asked for last have opened. */
  #taken = 0;

  /** `closed` is called when all turns of a pair are over: what they have to write is there. */
  constructor(host: Host, closed: () => void) {
    this.#host = host;
    this.#closed = closed;
  }

  get isOpen(): boolean {
    return this.#open.length > 0;
  }

  /** A turn is open, or somebody waits for one. */
  get isWanted(): boolean {
    return this.isOpen || this.#waiting.length > 0;
  }

  /** Gives `taker` one turn. It asks once for each. */
  request(taker: TurnTaker): void {
    this.#waiting.push(taker);
    if (this.#pairs === 0) this.#ask();
  }

  #ask(): void {
    this.#taken = 0;
    for (; this.#pairs < PAIRS_AHEAD; this.#pairs++) {
      this.#host.immediate(this.#openAll);
      this.#host.immediate(this.#closeAll);
    }
  }

  #openWaiting(): void {
    this.#pairs--;
    if (this.#waiting.length === 0) return;
    if (this.#taken >= TURNS_IN_A_ROUND) {
      if (this.#pairs === 0) this.#ask();
      return;
    }
    this.#taken += this.#waiting.length;
    this.#open = this.#waiting;
    this.#waiting = [];
    for (const taker of this.#open) taker.openTurn();
  }

  #closeOpen(): void {
    if (this.#open.length === 0) return;
    try {
      for (const taker of this.#open) taker.closeTurn();
    } finally {
      this.#open = [];
      this.#closed();
    }
  }
}
