// Values and text on their way to a terminal or a program.

// What can move the cursor, ring, recolour or reorder text. Names are checked when they are stored; messages and payloads are not.
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu;

/** Text that cannot do anything to the terminal it is shown on: controls become visible escapes. */
export function clean(text: string): string {
  return text.replaceAll(CONTROLS, (mark) =>
    mark === "\n" ? " " : `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A value as plain JSON can say it: dates as ISO text, bytes as base64, errors as objects without their stack. */
export function jsonable(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
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

/** One line of JSON for people, cut at `max` characters. */
export function shortJson(value: unknown, max: number = Number.POSITIVE_INFINITY): string {
  return truncate(clean(JSON.stringify(jsonable(value)) ?? "undefined"), max);
}

export function truncate(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, Math.max(0, max - 1))}…` : text;
}

/** What an error says, with its cause, on one line. */
export function errorLine(error: unknown): string {
  if (typeof error !== "object" || error === null) return clean(String(error));
  const { message, code, name, cause } = error as Record<string, unknown>;
  const text = typeof message === "string" && message !== "" ? message : String(name ?? "unknown error");
  const isNamed = typeof code === "string" && !text.includes(code);
  const because = cause === undefined || cause === null ? "" : ` Cause: ${errorLine(cause)}`;
  return clean(isNamed ? `${text} (${code})` : text) + because;
}

export function countOf(count: number, one: string, many: string = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
