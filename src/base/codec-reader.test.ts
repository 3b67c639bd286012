import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { decode, encode } from "./codec.ts";

describe("decode", () => {
  const before = Object.getOwnPropertyDescriptors(Object.prototype);
  beforeEach(() => expect(Object.getOwnPropertyDescriptors(Object.prototype)).toEqual(before));
  afterEach(() => expect(Object.getOwnPropertyDescriptors(Object.prototype)).toEqual(before));

  it.each([
    '{"__proto__":{"polluted":1}}',
    '{"__proto__":{"polluted":{"$date":null}}}',
    '{"__proto__":{"$map":[["polluted",1]]}}',
    '{"__proto__":null,"a":{"$undefined":true}}',
    '{"constructor":{"prototype":{"polluted":{"$undefined":true}}}}',
    '{"prototype":{"polluted":1n}}'.replace("1n", '{"$bigint":"1"}'),
    '{"$":{"__proto__":{"polluted":{"$bigint":"1"}}}}',
    '{"$error":{"name":"Error","message":"","fields":{"__proto__":{"polluted":1},"constructor":{"$set":[]}}}}',
    '[{"__proto__":[{"$undefined":true}]}]',
    '{"$map":[["__proto__",{"polluted":1}]]}',
  ])("Q8 %s pollutes nothing", (text) => {
    const value = decode(text) as object;
    expect((value as { polluted?: unknown }).polluted).toBeUndefined();
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(encode(decode(encode(value)))).toBe(encode(value));
  });

  it("Q8 makes __proto__ an own property", () => {
    const value = decode('{"__proto__":{"at":{"$date":null}}}') as object;
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.keys(value)).toEqual(["__proto__"]);
  });

  it.each([
    "",
    " ",
    "{",
    "[1,]",
    "undefined",
    "NaN",
    "'a'",
    '{"a":1}}',
    '{"$unknown":1}',
    '{"$__proto__":1}',
    '{"$constructor":1}',
    '{"$toString":1}',
    '{"$hole":true}',
    '{"a":{"$hole":true}}',
    '[{"$hole":1}]',
    '{"$set":[{"$hole":true}]}',
    '{"$undefined":false}',
    '{"$undefined":null}',
    '{"$number":"1"}',
    '{"$number":1}',
    '{"$bigint":1}',
    '{"$bigint":"1.5"}',
    '{"$bigint":"0x10"}',
    '{"$bigint":""}',
    '{"$date":0}',
    '{"$date":"yesterday"}',
    '{"$date":"2026-01-01"}',
    '{"$date":"2026-13-01T00:00:00.000Z"}',
    '{"$regexp":"a"}',
    '{"$regexp":["("]}',
    '{"$regexp":["(",""]}',
    '{"$regexp":["a","zz"]}',
    '{"$regexp":["a","g","1"]}',
    '{"$url":"not a url"}',
    '{"$url":1}',
    '{"$map":{}}',
    '{"$map":[1]}',
    '{"$map":[[1]]}',
    '{"$map":[[1,2,3]]}',
    '{"$set":{}}',
    '{"$bytes":"AAAA"}',
    '{"$bytes":["Uint8Array"]}',
    '{"$bytes":["Uint8Array","A"]}',
    '{"$bytes":["Function","AAAA"]}',
    '{"$bytes":["__proto__","AAAA"]}',
    '{"$bytes":["Float64Array","AAAA"]}',
    '{"$error":"boom"}',
    '{"$error":{}}',
    '{"$error":{"name":1,"message":""}}',
    '{"$error":{"name":"E","message":"","fields":[]}}',
    '{"$error":{"name":"E","message":"","cause":{"$x":1}}}',
    '{"$":1}',
    '{"$":[]}',
    '{"$":null}',
  ])("Q8 calls %s corrupt", (text) => {
    expect(() => decode(text)).toThrow(expect.objectContaining({ code: "corrupt_value" }));
  });

  it("Q13 does not quote the value it cannot read", () => {
    for (const text of ['{"password":"hunter2"', '{"$date":"hunter2"}', '{"$url":"hunter2"}']) {
      expect(() => decode(text)).toThrow(expect.objectContaining({ message: expect.not.stringContaining("hunter2") }));
    }
  });

  it("reads what a person reformatted", () => {
    expect(decode(' { "at" : {\n "$date" : "2026-01-01T08:00:00+08:00" } } ')).toEqual({ at: new Date("2026-01-01") });
  });

  it("gives each call a value of its own", () => {
    const text = encode({ list: [1], at: new Date(0) });
    expect(decode(text)).not.toBe(decode(text));
  });
});
