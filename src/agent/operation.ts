/** What a reducer wants done to a slice. */
export type Operation<T> =
  | { readonly kind: "append"; readonly items: readonly T[] }
  | { readonly kind: "replace"; readonly items: readonly T[] }
  | { readonly kind: "clear"; readonly where: ((item: T) => boolean) | null };

/** Adds one item at the end. */
export function append<T>(item: T): Operation<T> {
  return { kind: "append", items: [item] };
}

/** Adds items at the end. */
export function extend<T>(items: readonly T[]): Operation<T> {
  return { kind: "append", items };
}

/** Puts these items in the place of all that are there. */
export function replace<T>(items: readonly T[]): Operation<T> {
  return { kind: "replace", items };
}

/** Removes the items that `where` holds for; without it, all of them. */
export function clear<T>(where?: (item: T) => boolean): Operation<T> {
  return { kind: "clear", where: where ?? null };
}
