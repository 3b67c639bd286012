import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isWellFormed, utf8Length } from "./utf8.ts";

describe("utf8", () => {
  it("counts what an encoder would write", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(utf8Length(text)).toBe(new TextEncoder().encode(text).length);
      }),
    );
    for (const text of ["", "é", "€", "𝄞", "\ud800", "\udc00\ud800", "a\ud834", "\ud834\ud834\udd1e"]) {
      expect(utf8Length(text)).toBe(new TextEncoder().encode(text).length);
    }
  });

  it("tells lone surrogates from pairs", () => {
    for (const text of ["", "a", "𝄞", "a𝄞b"]) expect(isWellFormed(text)).toBe(true);
    for (const text of ["\ud834", "\udd1e", "\udd1e\ud834", "\ud834\ud834\udd1e", "a\ud834"]) {
      expect(isWellFormed(text)).toBe(false);
    }
  });
});
