import { describe, expect, it } from "vitest";
import { AssertionError, assert, unreachable } from "./assert.ts";

describe("assert", () => {
  it("passes what holds and narrows its type", () => {
    const text = "a" as string | null;
    assert(text !== null, "text is there");
    expect(text.length).toBe(1);
  });

  it("throws an AssertionError with the message", () => {
    for (const broken of [false, 0, "", null, undefined]) {
      expect(() => assert(broken, "seq is dense")).toThrow(new AssertionError("seq is dense"));
    }
  });

  it("names the case that was thought impossible", () => {
    expect(() => unreachable({ kind: "new" } as never)).toThrow('Unreachable case: {"kind":"new"}');
    expect(() => unreachable(undefined as never)).toThrow("Unreachable case: undefined");
    expect(() => unreachable(1n as never)).toThrow("Unreachable case: 1");
  });
});
