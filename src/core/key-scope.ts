import { assertName } from "../base/ids.ts";

/** Counts the uses of each name per kind, so that the n-th use has a key of its own; `map` opens one scope per item (P6). */
export class KeyScope {
  readonly prefix: string;
  // Steps are counted by their name alone: building a longer text for each would cost more than the count.
  readonly #steps = new Map<string, number>();
  #others: Map<string, number> | null = null;

  constructor(prefix: string) {
    this.prefix = prefix;
  }

  /** The key of the next use of a name. `what` says what the name names, if it turns out not to be one. */
  next(kind: string, name: string, what: string): string {
    const uses = this.#uses(kind);
    const use = kind === "step.started" ? name : `${kind} ${name}`;
    const before = uses.get(use);
    // A name that was used before was checked before.
    if (before === undefined) assertName(what, name);
    const n = (before ?? 0) + 1;
    uses.set(use, n);
    return n === 1 ? this.prefix + name : `${this.prefix}${name}#${n}`;
  }

  /** The key that somebody chose; `null` if it was used before. */
  choose(kind: string, key: string): string | null {
    assertName("key", key);
    const uses = this.#uses(kind);
    const use = kind === "step.started" ? key : `${kind} ${key}`;
    if (uses.has(use)) return null;
    uses.set(use, 1);
    return this.prefix + key;
  }

  /** Takes back the last use of a name or key: the call it was for has not been made. */
  giveBack(kind: string, name: string): void {
    const uses = this.#uses(kind);
    const use = kind === "step.started" ? name : `${kind} ${name}`;
    const n = uses.get(use) ?? 0;
    if (n > 1) uses.set(use, n - 1);
    else uses.delete(use);
  }

  #uses(kind: string): Map<string, number> {
    if (kind === "step.started") return this.#steps;
    this.#others ??= new Map();
    return this.#others;
  }
}

/** The name in a key: without the item of a map before it and the count behind it. */
export function nameOf(key: string | null): string {
  return key?.split("/").at(-1)?.split("#")[0] ?? "";
}
