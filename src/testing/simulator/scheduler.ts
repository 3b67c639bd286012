import type { Choices } from "./choices.ts";

/** Whoever events happen to. */
export interface Actor {
  /** Whether anything can happen to it now. */
  readonly isMoving: boolean;
}

/** Something that may happen next. */
export interface SimEvent {
  /** The process it happens in; `null`: it happens in the store or on the way to it. */
  readonly actor: Actor | null;
  readonly label: string;
  happen(): void;
}

export type Order = "oldest" | "any" | "favourite";

/** Holds what may happen next and chooses. */
export class Scheduler {
  readonly #choices: Choices;
  readonly #order: Order;
  readonly #favourite: () => Actor | null;
  #events: SimEvent[] = [];

  constructor(choices: Choices, order: Order, favourite: () => Actor | null) {
    this.#choices = choices;
    this.#order = order;
    this.#favourite = favourite;
  }

  add(event: SimEvent): void {
    this.#events.push(event);
  }

  /** Takes the event that happens next out of the list; `null` if nothing can happen now. */
  next(): SimEvent | null {
    const possible: number[] = [];
    for (let i = 0; i < this.#events.length; i++) {
      const { actor } = this.#events[i] as SimEvent;
      if (actor === null || actor.isMoving) possible.push(i);
    }
    if (possible.length === 0) return null;
    const [event] = this.#events.splice(possible[this.#choose(possible)] as number, 1);
    return event as SimEvent;
  }

  #choose(possible: readonly number[]): number {
    if (this.#order === "any" || this.#choices.chance(0.15)) return this.#choices.below(possible.length);
    if (this.#order === "oldest") return 0;
    const favourite = this.#favourite();
    const first = possible.findIndex((i) => (this.#events[i] as SimEvent).actor === favourite);
    return Math.max(0, first);
  }

  /** Nothing more happens to this one. */
  forget(actor: Actor): void {
    this.#events = this.#events.filter((event) => event.actor !== actor);
  }
}
