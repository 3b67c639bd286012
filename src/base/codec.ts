// Values as text: tagged JSON
// Plain JSON stands for itself. What JSON cannot say is an object with one key that begins with `$`:
//
//   {"$undefined":true}            {"$number":"NaN" | "Infinity" | "-Infinity" | "-0"}      {"$bigint":"12"}
//   {"$date":"2026-01-01T00:00:00.000Z" | null}                {"$regexp":["a+","gi"]}      {"$url":"https://…"}
//   {"$map":[[key,value],…]}       {"$set":[value,…]}          {"$bytes":["Uint8Array","base64"]}
//   {"$error":{"name":…,"message":…,"cause"?,"errors"?,"fields"?}}
//   {"$hole":true}                 a gap in a sparse array
//   {"$redacted":"string"}         a value that was taken out, by its kind       {"$secret":"NAME"}   a handle on a secret
//   {"$":{"$date":1}}              an object of the user's that looks like a tag
//
//   V1. decode(encode(x)) equals x, or encode(x) throws and names the path to what it refuses (I21).
//   V2. Whatever encode wrote, decode reads: both hold the same limits.
//   V3. Nothing in a text names a class or runs code; `__proto__` and its like are plain data (Q8).
//
// Not kept, as with structuredClone: the identity of shared references (they come back as copies), prototypes of
// null, properties that are not enumerable, views' surplus buffer; a Buffer comes back as a Uint8Array. Errors
// come back without a stack, under their name, and as their class only if JavaScript itself defines it.

import { readTagged } from "./codec-reader.ts";
import { isOutOfText, type Room, tooLarge, writeTagged } from "./codec-writer.ts";
import { PawlError } from "./errors.ts";
import { utf8Length } from "./utf8.ts";
import { MAX_DEPTH, MAX_NODES, MAX_TEXT, WRAP_DEPTH, WRAP_NODES } from "./value-limits.ts";

export interface EncodeOptions {
  /** What the value is called in errors: `input` gives `input.items[3]`. */
  readonly path?: string;
  /** The most bytes of UTF-8 the text may take. */
  readonly maxBytes?: number;
  /** The value will stand inside another one: levels and values stay free for it. */
  readonly willBeWrapped?: boolean;
}

const ALONE: Room = { depth: MAX_DEPTH, nodes: MAX_NODES };
const WRAPPED: Room = { depth: MAX_DEPTH - WRAP_DEPTH, nodes: MAX_NODES - WRAP_NODES };

const DOLLAR = 36;
// A text of 65 containers inside each other has at least 65 brackets to open and 65 to close.
const SURELY_SHALLOW = 2 * (MAX_DEPTH + 1);

/**
 * The text of a value, for `decode` to read back.
 * Throws `not_serializable` with the path to what cannot be stored, and `too_large` above `maxBytes`.
 */
export function encode(value: unknown, options: EncodeOptions = {}): string {
  const path = options.path ?? "value";
  const maxBytes = options.maxBytes ?? MAX_TEXT;
  const room = options.willBeWrapped === true ? WRAPPED : ALONE;
  const text = encodeJson(value, path, maxBytes, room) ?? writeTagged(value, path, maxBytes, room);
  if (text.length * 3 > maxBytes && utf8Length(text) > maxBytes) throw tooLarge(path, maxBytes);
  return text;
}

/** The value of a text that `encode` wrote. Throws `corrupt_value` for any other text. */
export function decode(text: string): unknown {
  const value = parse(text);
  if (typeof value !== "object" || value === null) return value;
  // A tag needs a quote before its `$`, and only text we did not write could hide that behind an escape.
  return text.length < SURELY_SHALLOW && !text.includes('"$') ? value : readTagged(value);
}

function parse(text: string): unknown {
  if (text.length > MAX_TEXT) {
    throw new PawlError(
      "corrupt_value",
      `A stored value cannot be read: it has ${text.length} characters, more than the ${MAX_TEXT} of any value. Restore the row from a backup.`,
    );
  }
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message would quote the value, and with it whatever secret it holds.
    throw new PawlError(
      "corrupt_value",
      `A stored value cannot be read: its ${text.length} characters are not JSON. Restore the row from a backup.`,
    );
  }
}

/** The text of a value that is plain JSON, or null: then the writer says it in tags, or why it cannot. */
function encodeJson(value: unknown, path: string, maxChars: number, room: Room): string | null {
  const tally: Tally = { nodes: 1, chars: 0, maxChars, room };
  try {
    if (isJson(value, 0, tally)) return JSON.stringify(value);
  } catch (thrown) {
    // A getter or proxy threw: the writer finds out where.
    if (!isOutOfText(thrown)) return null;
    tally.chars = Number.POSITIVE_INFINITY;
  }
  // A UTF-16 unit takes at least a byte, so this much is certain before any text is built.
  if (tally.chars > maxChars) throw tooLarge(path, maxChars);
  return null;
}

interface Tally {
  nodes: number;
  chars: number;
  readonly maxChars: number;
  readonly room: Room;
}

function isJson(value: unknown, depth: number, tally: Tally): boolean {
  switch (typeof value) {
    case "string":
      tally.chars += value.length;
      return tally.chars <= tally.maxChars;
    case "number":
      return value === 0 ? 1 / value > 0 : Number.isFinite(value);
    case "boolean":
      return true;
    case "object":
      if (value === null) return true;
      if (depth >= tally.room.depth) return false;
      return Array.isArray(value) ? isJsonArray(value, depth, tally) : isJsonObject(value, depth, tally);
    default:
      return false;
  }
}

function isJsonArray(array: readonly unknown[], depth: number, tally: Tally): boolean {
  tally.nodes += array.length;
  if (tally.nodes > tally.room.nodes || Object.getPrototypeOf(array) !== Array.prototype) return false;
  // Holes, and properties such as the `groups` of a match, which JSON.stringify would drop.
  if (Object.keys(array).length !== array.length) return false;
  for (let i = 0; i < array.length; i++) {
    if (!isJson(array[i], depth + 1, tally)) return false;
  }
  return true;
}

function isJsonObject(object: object, depth: number, tally: Tally): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  if (prototype !== Object.prototype && prototype !== null) return false;
  const keys = Object.keys(object);
  tally.nodes += keys.length;
  if (tally.nodes > tally.room.nodes || Object.getOwnPropertySymbols(object).length > 0) return false;
  if (keys.length === 1 && keys[0]!.charCodeAt(0) === DOLLAR) return false;
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i]!;
    tally.chars += key.length;
    if (!isJson((object as Record<string, unknown>)[key], depth + 1, tally)) return false;
  }
  return true;
}
