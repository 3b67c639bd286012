import { expect, it } from "vitest";
import { isSameBoot } from "./boot.ts";

it.each([
  ["6d1b", "6d1b", true],
  ["6d1b", "77aa", false],
  ["t:1000", "t:1120", true],
  ["t:1120", "t:1000", true],
  ["t:1000", "t:1121", false],
  ["t:1000", "6d1b", false],
  ["t:", "t:", true],
  ["t:x", "t:y", false],
])("%s and %s: %s", (a, b, expected) => {
  expect(isSameBoot(a, b)).toBe(expected);
});
