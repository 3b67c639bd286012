import { encodePayload } from "./draft.ts";

/** A digest that does not depend on the order in which properties were written. */
export function stableDigest(digest: (text: string) => string, value: unknown): string {
  // What a value is recorded as is plain JSON, whatever the value was.
  return digest(JSON.stringify(sorted(JSON.parse(encodePayload(value, "action")))));
}

function sorted(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(sorted);
  if (typeof json !== "object" || json === null) return json;
  const entries = Object.entries(json).sort(([a], [b]) => (a < b ? -1 : 1));
  // Its properties as a list: an object would put names that are numbers first, and lose one that is `__proto__`. In an object, so that
  // no list of the value's own reads like it.
  return { "": entries.map(([key, inner]) => [key, sorted(inner)]) };
}

export function isPlainRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
