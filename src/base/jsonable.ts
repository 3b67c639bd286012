import { toBase64 } from "./base64.ts";

/** A value as plain JSON can say it: dates as ISO text, bytes as base64, errors as objects without their stack. */
export function jsonable(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array) return toBase64(value);
  if (value instanceof Map) return [...value].map(([key, item]) => [jsonable(key), jsonable(item)]);
  if (value instanceof Set) return [...value].map(jsonable);
  if (Array.isArray(value)) return value.map(jsonable);
  if (value instanceof Error) return errorFacts(value);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, jsonable(item)]));
}

function errorFacts(error: Error): Record<string, unknown> {
  const {
    name,
    message,
    stack: _,
    cause,
    ...rest
  } = { ...error, name: error.name, message: error.message, stack: "", cause: error.cause };
  const facts = { name, message, ...(jsonable(rest) as object) };
  return cause === undefined ? facts : { ...facts, cause: jsonable(cause) };
}
