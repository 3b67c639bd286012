// Redaction
// Takes values out of an exported journal and leaves a mark in their place. What replay goes by stays: entry types, keys, positions, times, child
// ids. A digest goes with the input it was taken of: for a card number or an address it would be as good as the value.
import { REDACTED_TAG, REDACTED_TEXT } from "../base/redacted.ts";
import { TEXT_PLACES, VALUE_FIELDS } from "../core/entry-values.ts";
import type { ExportedEntry } from "./export.ts";

/** All values, or those with one of these names. */
export type Redact = "all" | readonly string[];

type Json = Record<string, unknown>;

export function redactEntry(entry: ExportedEntry, redact: Redact): ExportedEntry {
  const { type, key, value } = entry;
  const names = redact === "all" ? null : new Set(redact);
  const isNamed = (name: string) => names === null || names.has(name);
  const isWhole = key !== null && (isNamed(key) || isNamed(nameOf(key)));
  const fields = VALUE_FIELDS[type];
  if (fields === undefined) {
    const isTaken = isWhole || isNamed("output");
    return { ...entry, value: isTaken ? markOf(value) : redactJson(value, isNamed) };
  }
  if (typeof value !== "object" || value === null) return entry;
  const payload = Object.fromEntries(
    Object.entries(value).map(([field, inner]) => [
      field,
      fields.includes(field) ? redactField(`${type} ${field}`, field, inner, isWhole, isNamed) : inner,
    ]),
  );
  return { ...entry, value: withoutDigest(type, value as Json, payload) };
}

function redactField(
  place: string,
  field: string,
  value: unknown,
  isWhole: boolean,
  isNamed: (name: string) => boolean,
): unknown {
  // The keys of run state are names like those of steps.
  if (place === "run.continued state" && !(isWhole || isNamed(field))) return redactJson(value, isNamed);
  if (place === "run.continued state") return mapRecord(value as Json, markOf);
  const isTaken = isWhole || isNamed(field);
  if (TEXT_PLACES.has(place)) return isTaken ? REDACTED_TEXT : value;
  return isTaken ? markOf(value) : redactJson(value, isNamed);
}

/** A child's input is not here to look at, so its digest never stays, nor does what an approval is bound by; a step's stays with its input. */
function withoutDigest(type: string, before: Json, after: Json): Json {
  const isTaken = JSON.stringify(before["input"]) !== JSON.stringify(after["input"]);
  if (!("digest" in after) || (type === "step.started" && !isTaken)) return after;
  return { ...after, digest: REDACTED_TEXT, ...("hash" in after && { hash: REDACTED_TEXT }) };
}

/** The name in a key: without the item of a map before it and the count behind it. */
function nameOf(key: string): string {
  return key.split("/").at(-1)?.split("#")[0] ?? key;
}

/** The mark for a value: only what kind it was remains. */
function markOf(value: unknown): Json {
  return { [REDACTED_TAG]: kindOf(value) };
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  const [tag, ...others] = typeof value === "object" ? Object.keys(value) : [];
  return tag?.startsWith("$") && tag.length > 1 && others.length === 0 ? tag.slice(1) : typeof value;
}

/** Walks tagged JSON and takes out every property, and every entry of a map, that is named. */
function redactJson(value: unknown, isNamed: (name: string) => boolean): unknown {
  if (typeof value !== "object" || value === null) return value;
  const walk = (inner: unknown) => redactJson(inner, isNamed);
  if (Array.isArray(value)) return value.map(walk);
  const record = (inner: Json) =>
    mapRecord(inner, (item, key) => (isNamed(key) ? markOf(item) : redactJson(item, isNamed)));
  const [tag, ...others] = Object.keys(value);
  if (tag === undefined || others.length > 0 || !tag.startsWith("$")) return record(value as Json);
  const content = (value as Json)[tag];
  switch (tag) {
    case "$":
      return { $: record(content as Json) };
    case "$set":
      return { $set: walk(content) };
    case "$map":
      return { $map: (content as [unknown, unknown][]).map(([key, item]) => redactPair(key, item, isNamed)) };
    case "$error":
      return { $error: redactError(content as Json, isNamed) };
    default:
      return value;
  }
}

function redactPair(key: unknown, item: unknown, isNamed: (name: string) => boolean): [unknown, unknown] {
  const isTaken = typeof key === "string" && isNamed(key);
  return [redactJson(key, isNamed), isTaken ? markOf(item) : redactJson(item, isNamed)];
}

function redactError(error: Json, isNamed: (name: string) => boolean): Json {
  return mapRecord(error, (part, key) => {
    if (key === "name") return part;
    if (key === "message") return isNamed(key) ? REDACTED_TEXT : part;
    return redactJson(part, isNamed);
  });
}

/** Never assigns: `__proto__` stays a property like any other. */
function mapRecord(record: Json, change: (item: unknown, key: string) => unknown): Json {
  return Object.fromEntries(Object.entries(record).map(([key, item]) => [key, change(item, key)]));
}
