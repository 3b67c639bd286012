import fc from "fast-check";
import { expect, it } from "vitest";
import { isName } from "../base/ids.ts";
import { callName, safeName } from "./call-name.ts";

/** Any text, broken ones among them. */
const anyText = fc.string({ unit: fc.nat(0x10ffff).map((code) => String.fromCodePoint(code)), maxLength: 300 });

it("B55 whatever a model calls its call is a name of a step, and plain ids stay as they are", () => {
  fc.assert(
    fc.property(anyText, fc.string({ maxLength: 300 }), (tool, id) => {
      expect(isName(callName("tool", tool, id))).toBe(true);
    }),
  );
  expect(callName("tool", "read_page", "call_aB3-x")).toBe("tool.read_page.call_aB3-x");
});

it("B55 ids that are cut short are told apart", () => {
  const [a, b] = ["a", "b"].map((end) => safeName("x".repeat(200) + end));
  expect(a).not.toBe(b);
  expect(safeName("")).not.toBe(safeName("/"));
});
