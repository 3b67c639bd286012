import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { PawlError } from "../base/errors.ts";
import type { Store } from "../core/store.ts";
import { memoryStore } from "../stores/memory/memory-store.ts";
import { sqliteStore } from "../stores/sqlite/sqlite-store.ts";

export interface StoreOptions {
  readonly clock?: Clock;
  readonly durability?: "power" | "process";
}

export const DEFAULT_STORE: string = join(".pawl", "pawl.db");

/** The store that a URL names: `memory:`, `sqlite:path`, or the path of a SQLite file. */
export function storeOf(url: string, options: StoreOptions): Store {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(url)?.[1]?.toLowerCase();
  if (scheme === "memory") return memoryStore(options);
  if (scheme === "sqlite") return sqliteStore(url.slice("sqlite:".length).replace(/^\/\//, ""), options);
  if (scheme === undefined) return sqliteStore(url, options);
  throw new PawlError(
    "invalid_argument",
    `There is no store for "${scheme}:". Use a file path or sqlite:path for SQLite, or memory: for tests.`,
    {
      fields: { url: url.replace(/\/\/[^@/]*@/, "//…@") },
    },
  );
}
