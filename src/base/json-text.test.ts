import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseJson, RepeatedKey } from "./json-text.ts";

describe("JSON that a person has edited", () => {
  it("C-23 a byte order mark means nothing", () => {
    expect(parseJson('\uFEFF{"a":1}')).toEqual({ a: 1 });
  });

  it.each([
    ['{"a":1,"a":1}', "a"],
    ['{"phases":{"b":{"status":"done"},"c":{},"b" : {}}}', "phases.b"],
    ['{"list":[{"x":1},{"y":{"z":1,"z":2}}]}', "list.y.z"],
    ['{"a":1,"\\u0061":2}', "a"],
    ['{"":1,"":2}', ""],
  ])("C-23 of a name that stands twice in an object only one would count: %s", (text, path) => {
    expect(() => parseJson(text)).toThrow(RepeatedKey);
    expect(() => parseJson(text)).toThrow(expect.objectContaining({ path }));
  });

  it("C-23 what JSON.stringify writes is read, with whatever quotes and brackets are in it", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(parseJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it("C-23 what is no JSON is a SyntaxError", () => {
    for (const text of ["", "{", '{"a":1', '{"a', "]", '{"a"::1}', '"\\"'])
      expect(() => parseJson(text)).toThrow(SyntaxError);
  });
});
