import { messageOf, type PawlError } from "../base/errors.ts";
import type { AnySlice } from "./slice.ts";
import { cannotRestore, type SliceSnapshot, type Snapshot } from "./snapshot.ts";

export interface RestoreOptions {
  /**
   * What happens to slices of the snapshot that the session does not have: "error" refuses the snapshot, "drop" leaves them out, "fresh" leaves
   * the session as it is. Default "error".
   */
  readonly onUnknownSlice?: "error" | "drop" | "fresh";
  /** Logs of the session: "keep" them, or "replace" them by those of a snapshot that was taken with `includeAll`. Default "keep". */
  readonly logs?: "keep" | "replace";
}

/** What became of a snapshot. */
export interface Restored {
  /** False if slices are unknown and `onUnknownSlice` is "fresh": nothing was restored. */
  readonly restored: boolean;
  /** Slices of the snapshot that the session does not have. */
  readonly unknown: readonly string[];
}

/** The items that every slice of the session is to have, by its name; nothing is changed yet. Throws `snapshot_restore`. */
export function restoredItems(
  slices: readonly AnySlice[],
  snapshot: Snapshot,
  { onUnknownSlice = "error", logs = "keep" }: RestoreOptions,
): { readonly items: ReadonlyMap<string, readonly unknown[]>; readonly unknown: readonly string[] } {
  const bySaved = new Map(slices.flatMap((slice) => [slice.name, ...slice.formerly].map((name) => [name, slice])));
  // A name that one slice has now and another had before is the first one's.
  for (const slice of slices) bySaved.set(slice.name, slice);
  const unknown = snapshot.slices.filter(({ slice }) => !bySaved.has(slice)).map(({ slice }) => slice);
  if (unknown.length > 0 && onUnknownSlice === "error") throw unknownType(unknown, slices);
  const items = new Map<string, readonly unknown[]>();
  // What a snapshot does not tell of was added to the program since: it begins as in a new session.
  for (const slice of slices) if (slice.policy === "state") items.set(slice.name, slice.initial().map(slice.accept));
  for (const saved of snapshot.slices) {
    const slice = bySaved.get(saved.slice);
    if (slice === undefined || (slice.policy === "log" && logs === "keep")) continue;
    items.set(slice.name, itemsOf(slice, saved));
  }
  return { items, unknown };
}

function itemsOf(slice: AnySlice, saved: SliceSnapshot): readonly unknown[] {
  return saved.items.map((item, index) => {
    const current = migrated(slice, saved, item);
    try {
      return slice.accept(current);
    } catch (cause) {
      throw cannotRestore(
        "bad_value",
        `Item ${index} of slice "${saved.slice}" in the snapshot is refused: ${messageOf(cause)}`,
        { slices: [saved.slice], index },
        cause,
      );
    }
  });
}

function migrated(slice: AnySlice, saved: SliceSnapshot, item: unknown): unknown {
  if (saved.version > slice.version)
    throw wrongVersion(slice, saved, "Use the program that wrote it, or a newer one than this.");
  let current = item;
  for (let version = saved.version; version < slice.version; version++) {
    const migrate = slice.migrate[version];
    if (migrate === undefined)
      throw wrongVersion(slice, saved, `Give the slice \`migrate: { ${version}: (item) => … }\`, or start fresh.`);
    try {
      current = migrate(current);
    } catch (cause) {
      throw cannotRestore(
        "bad_value",
        `The migration of slice "${slice.name}" from version ${version} has failed: ${messageOf(cause)}`,
        { slices: [saved.slice], version },
        cause,
      );
    }
  }
  return current;
}

function wrongVersion(slice: AnySlice, saved: SliceSnapshot, advice: string): PawlError {
  return cannotRestore(
    "slice_version",
    `The snapshot has slice "${saved.slice}" in version ${saved.version}, and the session has version ${slice.version}. ${advice}`,
    { slices: [saved.slice], saved: saved.version, current: slice.version },
  );
}

function unknownType(unknown: readonly string[], slices: readonly AnySlice[]): PawlError {
  const names = slices.map(({ name }) => name).sort();
  return cannotRestore(
    "unknown_type",
    `The snapshot has slices of unknown type: ${unknown.join(", ")}. The session has ${names.join(", ")}. ` +
      "Register them, name them in `formerly` of the slices that they are now, or choose `onUnknownSlice`.",
    { slices: unknown, registered: names },
  );
}
