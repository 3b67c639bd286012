/** The wall time at which every simulation begins. */
export const START: number = Date.UTC(2026, 0, 1);

interface Timer {
  readonly due: number;
  readonly order: number;
  fire: (() => void) | null;
}

/** Time that stands still until it is moved to the next thing that is due. */
export class VirtualTime {
  /** Milliseconds since the simulation began. */
  now = 0;
  /** How far the wall clock of the machine was set forward, or back. */
  stepMs = 0;
  readonly #heap: Timer[] = [];
  #order = 0;

  /** What the machine's wall clock says. */
  wall(): number {
    return START + Math.floor(this.now + this.stepMs);
  }

  /** Calls `fire` once time has come that far. Returns a function that forgets it. */
  after(ms: number, fire: () => void): () => void {
    const timer: Timer = { due: this.now + Math.max(0, ms), order: this.#order++, fire };
    this.#push(timer);
    return () => {
      timer.fire = null;
    };
  }

  /** Moves to the next due moment and fires what is due then; false if nothing ever is. */
  skip(): boolean {
    this.#dropForgotten();
    const first = this.#heap[0];
    if (first === undefined) return false;
    this.advance(Math.max(0, first.due - this.now));
    return true;
  }

  advance(ms: number): void {
    this.now += ms;
    for (let timer = this.#heap[0]; timer !== undefined && timer.due <= this.now; timer = this.#heap[0]) {
      this.#pop();
      timer.fire?.();
    }
  }

  #dropForgotten(): void {
    while (this.#heap[0]?.fire === null) this.#pop();
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let at = heap.push(timer) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (isBefore(heap[above] as Timer, timer)) break;
      heap[at] = heap[above] as Timer;
      at = above;
    }
    heap[at] = timer;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1] as Timer, heap[below] as Timer)) below++;
      if (isBefore(last, heap[below] as Timer)) break;
      heap[at] = heap[below] as Timer;
      at = below;
    }
    heap[at] = last;
  }
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.due < b.due || (a.due === b.due && a.order < b.order);
}
