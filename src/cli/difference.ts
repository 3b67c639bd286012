import { isDeepStrictEqual } from "node:util";

export interface Difference {
  /** Where in the value: `.items[2].id`; empty for the value itself. */
  readonly path: string;
  readonly expected: unknown;
  readonly actual: unknown;
}

/** Where two values differ, as deep down as can be said. */
export function differences(expected: unknown, actual: unknown, path = ""): Difference[] {
  if (isDeepStrictEqual(expected, actual)) return [];
  if (Array.isArray(expected) && Array.isArray(actual) && expected.length === actual.length) {
    return expected.flatMap((one, i) => differences(one, actual[i], `${path}[${i}]`));
  }
  if (!isRecord(expected) || !isRecord(actual)) return [{ path, expected, actual }];
  const names = new Set([...Object.keys(expected), ...Object.keys(actual)]);
  return [...names].flatMap((name) => differences(expected[name], actual[name], `${path}.${name}`));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
