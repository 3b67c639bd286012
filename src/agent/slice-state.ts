import type { Operation } from "./operation.ts";
import type { AnySlice } from "./slice.ts";

/** The items of one slice in one session. */
export class SliceState {
  readonly slice: AnySlice;
  #items: unknown[];
  // Made when somebody asks: a log that only grows is never copied.
  #view: readonly unknown[] | null = null;

  constructor(slice: AnySlice, items: readonly unknown[]) {
    this.slice = slice;
    this.#items = [...items];
  }

  get items(): readonly unknown[] {
    this.#view ??= Object.freeze([...this.#items]);
    return this.#view;
  }

  apply(operation: Operation<unknown>): void {
    switch (operation.kind) {
      case "append": {
        // All or nothing: the second item may be refused.
        const accepted = operation.items.map((item) => this.slice.accept(item));
        for (const item of accepted) this.#items.push(item);
        break;
      }
      case "replace":
        this.#items = operation.items.map((item) => this.slice.accept(item));
        break;
      case "clear": {
        const { where } = operation;
        this.#items = where === null ? [] : this.#items.filter((item) => !where(item));
        break;
      }
    }
    this.#view = null;
  }

  /** Takes over items that were accepted before. */
  set(items: readonly unknown[]): void {
    this.#items = [...items];
    this.#view = null;
  }

  copy(): SliceState {
    return new SliceState(this.slice, this.#items);
  }
}
