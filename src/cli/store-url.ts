import { existsSync } from "node:fs";
import { PawlError } from "../base/errors.ts";
import { shownUrl } from "../base/shown-url.ts";
import { DEFAULT_STORE, pathOf } from "../client/open-store.ts";

/** The store a command is about: --store, else PAWL_STORE, else the default file. */
export function storeUrl(option: string | undefined): string {
  const { PAWL_STORE } = process.env;
  return option ?? (PAWL_STORE === undefined || PAWL_STORE === "" ? DEFAULT_STORE : PAWL_STORE);
}

/** Looking must not create: a command that only reads refuses a file that is not there. */
export function assertStoreExists(url: string): void {
  if (storeExists(url)) return;
  const path = localPath(url);
  throw new PawlError(
    "storage_unavailable",
    `There is no store at ${path}. Start a run first (pawl run …, which creates it), or name the store with --store or PAWL_STORE.`,
    { fields: { path } },
  );
}

/** As far as that can be told without opening it. */
export function storeExists(url: string): boolean {
  const path = localPath(url);
  return path === null || existsSync(path);
}

/** The file of a SQLite store, or the directory of a file store; `null` for any other. */
function localPath(url: string): string | null {
  if (/^(sqlite|file):/i.test(url)) return pathOf(url);
  return /^[a-z][a-z0-9+.-]+:/i.test(url) ? null : url;
}

/** The option that names this store again, for commands we suggest; nothing if it is found without it. */
export function storeFlag(url: string): string {
  return url === storeUrl(undefined) ? "" : ` --store ${shownUrl(url)}`;
}
