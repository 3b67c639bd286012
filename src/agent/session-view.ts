import type { Slice } from "./slice.ts";

/** What is asked of one slice. */
export interface Query<T> {
  /** The newest item, or null if there is none. */
  latest(): T | null;
  all(): readonly T[];
  where(predicate: (item: T) => boolean): readonly T[];
}

/** A session as prompts and tools see it: to read from. */
export interface SessionView {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly tags: readonly string[];
  /** What a slice holds; nothing, if the session does not have it. */
  query<T>(slice: Slice<T>): Query<T>;
  has(slice: { readonly name: string }): boolean;
}

/** The answers about a list of items. */
export function queryOf<T>(items: readonly T[]): Query<T> {
  return {
    latest: () => items.at(-1) ?? null,
    all: () => items,
    where: (predicate) => items.filter(predicate),
  };
}
