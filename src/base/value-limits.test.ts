import { describe, expect, it } from "vitest";
import { decode, encode } from "./codec.ts";
import { PawlError } from "./errors.ts";
import { MAX_DEPTH, MAX_NODES, MAX_TEXT, WRAP_DEPTH, WRAP_NODES } from "./value-limits.ts";

const MIB = 2 ** 20;

function trip(value: unknown): unknown {
  return decode(encode(value));
}

/** The refusal of a value; fails the test if it is accepted. */
function refusal(value: unknown, options?: { path?: string; maxBytes?: number; willBeWrapped?: boolean }): PawlError {
  try {
    encode(value, options);
  } catch (error) {
    if (error instanceof PawlError) return error;
    throw error;
  }
  throw new Error("the value was accepted");
}

function nested(levels: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = wrap(value);
  return value;
}

describe("limits", () => {
  const wraps: [string, (inner: unknown) => unknown][] = [
    ["arrays", (inner) => [inner]],
    ["objects", (inner) => ({ a: inner })],
    ["tag-like objects", (inner) => ({ $date: inner })],
    ["maps", (inner) => new Map([[inner, 1]])],
    ["sets", (inner) => new Set([inner])],
    ["errors", (inner) => Object.assign(new Error("e"), { inner })],
  ];
  it.each(wraps)("Q8 V2 takes 64 levels of %s both ways", (_, wrap) => {
    const deepest = nested(MAX_DEPTH, wrap);
    expect(encode(trip(deepest))).toBe(encode(deepest));
    // Leaves do not count, however many brackets spell them out.
    const leaves = nested(MAX_DEPTH - 1, (inner) => Object.assign(new Array(5), [inner, undefined, 1n, -0]));
    expect(trip(leaves)).toStrictEqual(leaves);
  });

  it.each(wraps.slice(0, 5))("Q8 refuses the 65th level of %s", (_, wrap) => {
    expect(refusal(nested(MAX_DEPTH + 1, wrap)).code).toBe("not_serializable");
  });

  it("Q8 refuses depth and number in decode too, without exhausting the stack", () => {
    for (const levels of [MAX_DEPTH + 1, 10_000, 1_000_000]) {
      const arrays = "[".repeat(levels) + "]".repeat(levels);
      const objects = '{"a":'.repeat(levels) + 1 + "}".repeat(levels);
      expect(() => decode(arrays)).toThrow(/64 levels/);
      expect(() => decode(objects)).toThrow(/64 levels/);
    }
    expect(() => decode('{"$set":['.repeat(100) + "]}".repeat(100))).toThrow(/64 levels/);
    expect(() => decode('{"$":{"$":'.repeat(100) + 1 + "}}".repeat(100))).toThrow(/64 levels/);
    expect(() => decode(`[${"0,".repeat(MAX_NODES)}0]`)).toThrow(/more than 1000000/);
  });

  it("Q8 takes a million values, and not one more", () => {
    const most = new Array(MAX_NODES - 1).fill(0);
    expect(trip(most)).toHaveLength(MAX_NODES - 1);
    const tagged = [...most.slice(1), undefined];
    expect(trip(tagged)).toHaveLength(MAX_NODES - 1);
    expect(refusal([...most, 0]).message).toMatch(/more than 1000000/);
    expect(refusal([...tagged, 0]).message).toMatch(/more than 1000000/);
    // An error and its cause are two, however many words spell them out.
    const errors = new Array(1000).fill(new Error("e", { cause: 1 }));
    const rest = most.slice(0, MAX_NODES - 1 - 2 * errors.length);
    expect(trip([...rest, ...errors])).toHaveLength(rest.length + errors.length);
  });

  it("Q8 refuses references that multiply", () => {
    const dag = nested(60, (inner) => ({ left: inner, right: inner }));
    expect(refusal(dag).message).toMatch(/more than 1000000/);
  });

  it("B65 I20 takes exactly maxBytes, counted in UTF-8", () => {
    const limit = { maxBytes: MIB };
    expect(encode("x".repeat(MIB - 2), limit)).toHaveLength(MIB);
    expect(encode("é".repeat(MIB / 2 - 1), limit)).toHaveLength(MIB / 2 + 1);
    for (const value of ["x".repeat(MIB - 1), "é".repeat(MIB / 2), "€".repeat(MIB / 3), { a: ["x".repeat(MIB - 1)] }]) {
      const error = refusal(value, { ...limit, path: "input" });
      expect(error.code).toBe("too_large");
      expect(error.message).toMatch(/^input takes more than 1048576 bytes when stored\. Keep the data elsewhere/);
    }
  });

  it("Q8 refuses a text that no value can have, before it is parsed", () => {
    const text = `"${"x".repeat(MAX_TEXT)}"`;
    expect(() => decode(text)).toThrow(/more than the 134217728 of any value/);
    expect(refusal("x".repeat(MAX_TEXT + 1)).code).toBe("too_large");
  });

  it("Q8 B65 leaves room for what wraps a value, where it is asked to", () => {
    const wrapped = { path: "input", willBeWrapped: true };
    const deepest = nested(MAX_DEPTH - WRAP_DEPTH, (inner) => [inner]);
    expect(encode(deepest, wrapped)).toBe(encode(deepest));
    expect(refusal([deepest], wrapped).message).toMatch(/nested more than 62 levels/);
    expect(refusal([deepest, undefined], wrapped).message).toMatch(/nested more than 62 levels/);
    const most = new Array(MAX_NODES - WRAP_NODES - 1).fill(0);
    expect(encode(most, wrapped)).toBe(encode(most));
    expect(refusal([...most, 0], wrapped).message).toMatch(/more than 999000/);
  });

  it("B65 refuses what is far too large before building its text", () => {
    const big = "x".repeat(64 * MIB);
    const bytes = new Uint8Array(64 * MIB);
    for (const value of [
      big,
      new Array(10_000).fill(big),
      { at: new Date(), big },
      new Array(1000).fill(bytes),
      { [big]: 1 },
    ]) {
      expect(refusal(value, { maxBytes: MIB }).code).toBe("too_large");
    }
    expect(refusal(new Array(100).fill(big)).code).toBe("too_large");
    // Each NUL takes six characters, which no engine could hold in one text.
    expect(refusal("\u0000".repeat(100 * MIB)).code).toBe("too_large");
  });
});
