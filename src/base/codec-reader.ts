import { readBytes } from "./codec-bytes.ts";
import { builtinErrors } from "./codec-errors.ts";
import { PawlError } from "./errors.ts";
import { REDACTED_TAG, Redacted } from "./redacted.ts";
import { isSecretName, SECRET_TAG, Secret } from "./secret.ts";
import { MAX_DEPTH, MAX_NODES } from "./value-limits.ts";

interface Reading {
  nodes: number;
}

type Content = Readonly<Record<string, unknown>>;

/** Puts the values that tags stand for in their place. Takes over `parsed`, fresh from JSON.parse, and changes it. */
export function readTagged(parsed: object): unknown {
  return read(parsed, 0, { nodes: 1 });
}

function corrupt(reason: string): PawlError {
  return new PawlError(
    "corrupt_value",
    `A stored value cannot be read: ${reason}. If a newer version of Pawl wrote it, upgrade this process; otherwise restore the row from a backup.`,
  );
}

// Depth counts the containers of the value, as the writer does, not the brackets that spell out a tag.
function read(value: unknown, depth: number, r: Reading): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return readArray(value, depth, r);
  const keys = Object.keys(value);
  const first = keys.length === 1 ? keys[0]! : "";
  return first.startsWith("$")
    ? readTag(first, (value as Content)[first], depth, r)
    : readRecord(value as Record<string, unknown>, keys, depth, r);
}

function enter(depth: number, size: number, r: Reading): number {
  if (depth >= MAX_DEPTH) throw corrupt(`it is nested more than ${MAX_DEPTH} levels deep`);
  r.nodes += size;
  if (r.nodes > MAX_NODES) throw corrupt(`it holds more than ${MAX_NODES} values`);
  return depth + 1;
}

function readArray(array: unknown[], depth: number, r: Reading): unknown[] {
  const inner = enter(depth, array.length, r);
  for (let i = 0; i < array.length; i++) {
    const raw = array[i];
    if (typeof raw !== "object" || raw === null) continue;
    if (isHole(raw)) delete array[i];
    else array[i] = read(raw, inner, r);
  }
  return array;
}

function isHole(raw: object): boolean {
  return (raw as Content).$hole === true && Object.keys(raw).length === 1;
}

function readRecord(record: Record<string, unknown>, keys: readonly string[], depth: number, r: Reading): object {
  const inner = enter(depth, keys.length, r);
  for (const key of keys) {
    const raw = record[key];
    if (typeof raw !== "object" || raw === null) continue;
    const value = read(raw, inner, r);
    if (value !== raw) define(record, key, value, true);
  }
  return record;
}

/** Unlike an assignment, never calls a setter: `__proto__` becomes a property like any other. */
function define(target: object, key: string, value: unknown, enumerable: boolean): void {
  Object.defineProperty(target, key, { value, enumerable, writable: true, configurable: true });
}

function readTag(tag: string, content: unknown, depth: number, r: Reading): unknown {
  if (tag === "$undefined" && content === true) return undefined;
  const reader = tags.get(tag);
  if (reader === undefined) throw corrupt(`the tag ${JSON.stringify(tag.slice(0, 40))} is unknown`);
  const value = reader(content, depth, r);
  if (value === undefined) throw corrupt(`the content of the tag ${tag} does not fit it`);
  return value;
}

/** Answers undefined for content that does not fit the tag. */
type TagReader = (content: unknown, depth: number, r: Reading) => unknown;

const NUMBERS: ReadonlyMap<unknown, number> = new Map([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
  ["-0", -0],
]);

const tags: ReadonlyMap<string, TagReader> = new Map<string, TagReader>([
  ["$number", (content) => NUMBERS.get(content)],
  ["$bigint", (content) => (isText(content) && /^-?\d+$/.test(content) ? BigInt(content) : undefined)],
  ["$date", readDate],
  ["$regexp", readRegExp],
  ["$url", (content) => (isText(content) ? attempt(() => new URL(content)) : undefined)],
  ["$bytes", readBytesTag],
  ["$map", readMap],
  ["$set", readSet],
  ["$error", readError],
  [REDACTED_TAG, (content) => (isText(content) ? new Redacted(content) : undefined)],
  [SECRET_TAG, (content) => (isSecretName(content) ? new Secret(content) : undefined)],
  ["$", readEscaped],
]);

function isText(content: unknown): content is string {
  return typeof content === "string";
}

function isRecord(content: unknown): content is Record<string, unknown> {
  return typeof content === "object" && content !== null && !Array.isArray(content);
}

function attempt<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}

// Any offset is accepted, so that a person may edit it; a text without one would depend on the machine's zone.
const ISO_DATE = /^([+-]\d\d)?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

function readDate(content: unknown): Date | undefined {
  if (content === null) return new Date(Number.NaN);
  if (!isText(content) || !ISO_DATE.test(content)) return undefined;
  const date = new Date(content);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

function readRegExp(content: unknown): RegExp | undefined {
  if (!Array.isArray(content)) return undefined;
  const [source, flags, lastIndex = 0]: unknown[] = content;
  if (!isText(source) || !isText(flags) || typeof lastIndex !== "number") return undefined;
  const regexp = attempt(() => new RegExp(source, flags));
  if (regexp !== undefined) regexp.lastIndex = lastIndex;
  return regexp;
}

function readBytesTag(content: unknown): ArrayBufferView | ArrayBuffer | undefined {
  if (!Array.isArray(content)) return undefined;
  const [kind, text]: unknown[] = content;
  return isText(kind) && isText(text) ? (readBytes(kind, text) ?? undefined) : undefined;
}

function readMap(content: unknown, depth: number, r: Reading): Map<unknown, unknown> | undefined {
  if (!Array.isArray(content)) return undefined;
  const inner = enter(depth, 2 * content.length, r);
  const map = new Map<unknown, unknown>();
  for (const entry of content as unknown[]) {
    if (!Array.isArray(entry) || entry.length !== 2) return undefined;
    map.set(read(entry[0], inner, r), read(entry[1], inner, r));
  }
  return map;
}

function readSet(content: unknown, depth: number, r: Reading): Set<unknown> | undefined {
  if (!Array.isArray(content)) return undefined;
  const inner = enter(depth, content.length, r);
  const set = new Set<unknown>();
  for (const value of content as unknown[]) set.add(read(value, inner, r));
  return set;
}

function readEscaped(content: unknown, depth: number, r: Reading): object | undefined {
  return isRecord(content) ? readRecord(content, Object.keys(content), depth, r) : undefined;
}

function readError(content: unknown, depth: number, r: Reading): Error | undefined {
  if (!isRecord(content)) return undefined;
  const { name, message, fields = {} } = content;
  if (!isText(name) || !isText(message) || !isRecord(fields)) return undefined;
  const keys = Object.keys(fields);
  const slots = ["cause", "errors"].filter((slot) => Object.hasOwn(content, slot));
  const inner = enter(depth, keys.length + slots.length, r);
  const error = makeError(name, message);
  for (const slot of slots) define(error, slot, read(content[slot], inner, r), false);
  for (const key of keys) define(error, key, read(fields[key], inner, r), true);
  return error;
}

/** The stack would be the reader's, which explains nothing, differs between replays and costs most of the time. */
function makeError(name: string, message: string): Error {
  const make = builtinErrors.get(name) ?? builtinErrors.get("Error")!;
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const error = make(message);
  Error.stackTraceLimit = stackTraceLimit;
  if (error.name !== name) define(error, "name", name, false);
  define(error, "stack", `${name}: ${message}`, false);
  return error;
}
