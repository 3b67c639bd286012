// Values of a session
// What enters a slice is copied through the codec and frozen, so that nobody changes a session behind its back, and a value is the same live
// as after a restore. Dates, maps and sets refuse to be changed, too. Bytes, regular expressions and URLs cannot be frozen: they are copies.
import { decode, encode } from "../base/codec.ts";
import { messageOf, PawlError } from "../base/errors.ts";

/** A frozen copy of a value. `where` says what it would be part of: `slice "plan"`. */
export function sealed(value: unknown, where: string): unknown {
  let text: string;
  try {
    text = encode(value, { path: "item", willBeWrapped: true });
  } catch (cause) {
    throw new PawlError(
      "snapshot_serialization",
      `A value of ${where} cannot be kept: ${messageOf(cause)} Nothing of it was kept.`,
      { fields: { where }, cause },
    );
  }
  return frozen(decode(text));
}

const REFUSED = { value: refuse };
const NO_CHANGES_OF_DATES = Object.fromEntries(
  Object.getOwnPropertyNames(Date.prototype).flatMap((name) => (name.startsWith("set") ? [[name, REFUSED]] : [])),
);
const NO_CHANGES = { set: REFUSED, add: REFUSED, delete: REFUSED, clear: REFUSED };

/** Freezes a value that nobody else holds, with all that is in it. */
export function frozen(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (value instanceof Date) return Object.freeze(Object.defineProperties(value, NO_CHANGES_OF_DATES));
  if (value instanceof Map) {
    for (const entry of value) entry.forEach(frozen);
    return Object.freeze(Object.defineProperties(value, NO_CHANGES));
  }
  if (value instanceof Set) {
    for (const inner of value) frozen(inner);
    return Object.freeze(Object.defineProperties(value, NO_CHANGES));
  }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer || value instanceof RegExp || value instanceof URL)
    return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}

function refuse(): never {
  throw new TypeError("A value of a session cannot be changed. Dispatch an event, and let a reducer make a new one.");
}
