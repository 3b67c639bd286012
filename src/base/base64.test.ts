import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fromBase64, toBase64 } from "./base64.ts";

describe("base64", () => {
  it("writes what everybody writes, and reads it back", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(toBase64(bytes)).toBe(Buffer.from(bytes).toString("base64"));
        expect(fromBase64(toBase64(bytes))).toEqual(bytes);
      }),
    );
  });

  it("takes a megabyte", () => {
    const bytes = Uint8Array.from({ length: 2 ** 20 }, (_, i) => (i * 31) & 255);
    expect(toBase64(bytes) === Buffer.from(bytes).toString("base64")).toBe(true);
    expect(Buffer.from(fromBase64(toBase64(bytes))!).equals(bytes)).toBe(true);
  });

  it("refuses other text", () => {
    for (const text of ["A", "AA", "AAA", "AA A", "A===", "====", "=AAA", "AA=A", "AA-_", "AAA\n", "ÀAAA", "AAA€"]) {
      expect(fromBase64(text), text).toBeNull();
    }
  });
});
