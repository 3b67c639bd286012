// Values of somebody else's functions
// When they come, what they tell of has happened: to refuse one would tell that it has not.
import { encode } from "./codec.ts";
import { hasCode } from "./errors.ts";

/** What of a value can be stored: the value itself, or what JSON makes of it. */
export function storable(value: unknown): unknown {
  try {
    encode(value);
    return value;
  } catch (error) {
    if (!hasCode(error, "not_serializable")) return value;
    const text = readableJson(value);
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  }
}

/** A value as JSON for whoever reads it; `undefined` for what JSON has no word for. Unlike `JSON.stringify` it never throws. */
export function readableJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, plain);
  } catch {
    // It holds itself.
    return JSON.stringify(Object.prototype.toString.call(value));
  }
}

function plain(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  return value instanceof Map || value instanceof Set ? [...value] : value;
}
