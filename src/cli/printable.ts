// Values and text on their way to a terminal.
import { jsonable } from "../base/jsonable.ts";

// What can move the cursor, ring, recolour or reorder text. Names are checked when they are stored; messages and payloads are not.
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu;

/** Text that cannot do anything to the terminal it is shown on: controls become visible escapes. */
export function clean(text: string): string {
  return text.replaceAll(CONTROLS, (mark) =>
    mark === "\n" ? " " : `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
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
