import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import { type StandardSchema, validateNow } from "../core/schema.ts";
import type { Handler } from "./reducers.ts";
import { sealed } from "./sealed.ts";
import { type AnyEventType, type EventType, eventType } from "./session-event.ts";

/** "state" is what a snapshot restores; "log" is kept as it is, and in a snapshot only if it is asked for. */
export type SlicePolicy = "state" | "log";

/** Brings an item of an older version one version further. */
export type Migration = (item: unknown) => unknown;

/** What all slices have in common, whatever their items. */
export interface AnySlice {
  readonly name: string;
  readonly version: number;
  readonly policy: SlicePolicy;
  readonly formerly: readonly string[];
  readonly migrate: Readonly<Record<number, Migration>>;
  readonly handlers: readonly Handler<unknown>[];
  readonly added: AnyEventType;
  readonly initialised: AnyEventType;
  readonly cleared: AnyEventType;
  initial(): readonly unknown[];
  /** An item as the slice keeps it: fitting the schema, copied, frozen. */
  accept(item: unknown): unknown;
}

/** A named list of typed items, part of a session. */
export interface Slice<T> extends AnySlice {
  /** An item to add. */
  readonly added: EventType<T>;
  /** Items to put in the place of all that are there. */
  readonly initialised: EventType<readonly T[]>;
  /** Everything is to go. */
  readonly cleared: EventType<void>;
  initial(): readonly T[];
}

export interface SliceOptions<T> {
  /** The version of its items' shape. Raise it with a migration when the shape changes. Default 1. */
  readonly version?: number;
  /** Checks every item that enters, live and from a snapshot. It must accept what it has given out. Default: none. */
  readonly schema?: StandardSchema<unknown, T>;
  /** Whether a snapshot restores it. Default "state". */
  readonly policy?: SlicePolicy;
  /** What a new session begins with. Default: nothing. */
  readonly initial?: () => readonly T[];
  /** How an item of version n becomes one of version n + 1, by n. Default: none. */
  readonly migrate?: Readonly<Record<number, Migration>>;
  /** Names that the slice had before: snapshots that have them are still read. Default: none. */
  readonly formerly?: readonly string[];
  /** How its one value follows events. See `when`. Default: none. */
  readonly on?: readonly Handler<T>[];
}

/**
 * Defines a slice of a session's state.
 * @example
 * const findings = slice("findings", { schema: z.object({ path: z.string(), summary: z.string() }) });
 */
export function slice<T>(name: string, options?: SliceOptions<T>): Slice<T>;
export function slice<T>(name: string, options: SliceOptions<T> = {}): Slice<T> {
  assertName("slice", name);
  const { version = 1, schema, policy = "state", initial, migrate = {}, formerly = [], on = [] } = options;
  if (!Number.isSafeInteger(version) || version < 1)
    throw new PawlError(
      "invalid_argument",
      `\`version\` of slice "${name}" is ${version}. Give a whole number, at least 1.`,
      { fields: { slice: name, field: "version" } },
    );
  // What this slice has accepted once need not be checked again, and comes back often: reducers carry items over.
  const accepted = new WeakSet<object>();
  const accept = (item: unknown): unknown => {
    if (typeof item === "object" && item !== null && accepted.has(item)) return item;
    const kept = sealed(
      validateNow(schema as StandardSchema | undefined, item, `An item of slice "${name}"`),
      `slice "${name}"`,
    );
    if (typeof kept === "object" && kept !== null) accepted.add(kept);
    return kept;
  };
  return Object.freeze({
    name,
    version,
    policy,
    formerly,
    migrate,
    handlers: on as readonly unknown[] as readonly Handler<unknown>[],
    added: eventType<T>(`${name}.added`),
    initialised: eventType<readonly T[]>(`${name}.initialised`),
    cleared: eventType<void>(`${name}.cleared`),
    initial: () => initial?.() ?? [],
    accept,
  });
}
