import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { PawlError } from "../base/errors.ts";
import { shownUrl } from "../base/shown-url.ts";
import type { Store } from "../core/store.ts";
import { fileStore } from "../stores/file/file-store.ts";
import { memoryStore } from "../stores/memory/memory-store.ts";
import { postgresStore } from "../stores/postgres/postgres-store.ts";
import { sqliteStore } from "../stores/sqlite/sqlite-store.ts";

export interface StoreOptions {
  readonly clock?: Clock;
  readonly durability?: "power" | "process";
}

export const DEFAULT_STORE: string = join(".pawl", "pawl.db");

/** The store that a URL names: `postgres://…`, `file:dir`, `memory:`, `sqlite:path`, or the path of a SQLite file. */
export function storeOf(url: string, options: StoreOptions): Store {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(url)?.[1]?.toLowerCase();
  if (scheme === "memory") return memoryStore(options);
  if (scheme === "sqlite") return sqliteStore(pathOf(url), options);
  if (scheme === "file") return fileStore(pathOf(url), options);
  if (scheme === "postgres" || scheme === "postgresql") return postgresStoreOf(url, options);
  if (scheme === undefined) return sqliteStore(url, options);
  throw new PawlError(
    "invalid_argument",
    `There is no store for "${scheme}:". Use a file path or sqlite:path for SQLite, postgres://… for PostgreSQL, file:dir for a directory of JSON documents, or memory: for tests.`,
    {
      fields: { url: shownUrl(url) },
    },
  );
}

/** What follows the scheme, with or without the two slashes of a URL. */
export function pathOf(url: string): string {
  return url.slice(url.indexOf(":") + 1).replace(/^\/\//, "");
}

/** The name of the schema may come with the URL, as `?schema=name`; everything else in it belongs to the driver. */
function postgresStoreOf(url: string, { clock }: StoreOptions): Store {
  const address = addressOf(url);
  const schema = address.searchParams.get("schema");
  address.searchParams.delete("schema");
  return postgresStore(address.href, { ...(schema !== null && { schema }), ...(clock !== undefined && { clock }) });
}

function addressOf(url: string): URL {
  try {
    return new URL(url);
  } catch {
    throw new PawlError(
      "invalid_argument",
      `The store's URL ${shownUrl(url)} cannot be read. Write it as postgres://user:password@host:port/database, with special characters of the password as %XX.`,
      { fields: { url: shownUrl(url) } },
    );
  }
}
