import fc from "fast-check";
import { expect, it } from "vitest";
import { hex32 } from "./hex.ts";

it("writes 32 bits as eight digits", () => {
  fc.assert(
    fc.property(fc.integer(), (word) => {
      expect(hex32(word)).toBe((word >>> 0).toString(16).padStart(8, "0"));
    }),
  );
  expect([hex32(0), hex32(-1), hex32(2 ** 32 - 1), hex32(0x80000000)]).toEqual([
    "00000000",
    "ffffffff",
    "ffffffff",
    "80000000",
  ]);
});
