import { inspect } from "node:util";
import vm from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decode, encode } from "./codec.ts";
import { hasCode, PawlError } from "./errors.ts";
import { MAX_DEPTH } from "./value-limits.ts";

const MIB = 2 ** 20;

function trip(value: unknown): unknown {
  return decode(encode(value));
}

/** The refusal of a value; fails the test if it is accepted. */
function refusal(value: unknown, options?: { path?: string; maxBytes?: number }): PawlError {
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

function withProto(value: unknown): object {
  return Object.fromEntries([["__proto__", value]]);
}

/** An array of `length` holes, but for these values. */
function sparse(length: number, values: Record<number, unknown> | unknown[]): unknown[] {
  return Object.assign(new Array(length), values);
}

function expectSame(actual: unknown, expected: unknown): void {
  if (!same(actual, expected)) throw new Error(`got ${inspect(actual)}, expected ${inspect(expected)}`);
}

/** Stricter than toStrictEqual, and not confused by keys such as `constructor`: prototypes, order and holes count. */
function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b) || !same(content(a), content(b))) return false;
  if (ArrayBuffer.isView(a)) return true;
  const keys = ownKeys(a);
  return (
    same(keys.join(), ownKeys(b).join()) &&
    keys.every((key) => same((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]))
  );
}

function ownKeys(value: object): string[] {
  return Object.getOwnPropertyNames(value).filter(
    (key) => !(value instanceof Error && ["stack", "name"].includes(key)),
  );
}

/** What an object holds apart from its properties. */
function content(value: object): unknown {
  if (value instanceof Date) return value.getTime();
  if (value instanceof RegExp || value instanceof URL) return String(value);
  if (value instanceof Map || value instanceof Set) return [...value];
  if (value instanceof Error) return value.name;
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString("hex");
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("hex");
  return null;
}

class Point {
  x = 1;
  y = 2;
}

describe("what JSON says by itself", () => {
  it("I21 is plain JSON text, byte for byte", () => {
    for (const value of [
      null,
      true,
      0,
      1.5,
      -7,
      1e21,
      5e-324,
      "",
      "text",
      [],
      {},
      [1, [2, [3]]],
      { b: 1, a: { c: [] } },
    ]) {
      expect(encode(value)).toBe(JSON.stringify(value));
      expect(trip(value)).toStrictEqual(value);
    }
  });

  it("keeps the order of keys", () => {
    expect(Object.keys(trip({ z: 1, a: 2, m: new Date(0) }) as object)).toEqual(["z", "a", "m"]);
  });
});

describe("the fuzz list of values (RELIABILITY 4.d)", () => {
  const shared = { at: new Date(0) };
  const kept: [string, unknown][] = [
    ["undefined", undefined],
    ["nested undefined", { a: undefined, b: [undefined, 1] }],
    ["null", null],
    ["NaN", Number.NaN],
    ["Infinity", Number.POSITIVE_INFINITY],
    ["-Infinity", Number.NEGATIVE_INFINITY],
    ["-0", -0],
    ["nested numbers", { numbers: [Number.NaN, -0, 0, Number.NEGATIVE_INFINITY] }],
    ["BigInt", [0n, -1n, 2n ** 200n]],
    ["2^53-1, 2^53, 2^53+1", [2 ** 53 - 1, 2 ** 53, 2 ** 53 + 1, -(2 ** 53), Number.MAX_VALUE, 5e-324]],
    ["Date", new Date(1_700_000_000_123)],
    ["invalid Date", { at: new Date(Number.NaN) }],
    ["Date in the year 275760", [new Date(8.64e15), new Date(-8.64e15), new Date(-1)]],
    [
      "Map",
      new Map<unknown, unknown>([
        ["a", 1],
        [{ b: 1 }, new Map()],
        [Number.NaN, undefined],
      ]),
    ],
    ["Set", new Set<unknown>([1, "1", undefined, new Set([null])])],
    ["nested", { deep: [new Map([["k", new Set([{ at: new Date(5), n: 1n }])]])] }],
    ["RegExp", [/a+\/"\\/giu, /(?:)/, /\n/]],
    ["RegExp with a position", Object.assign(/a/g, { lastIndex: 3 })],
    ["typed arrays, signed", [Int8Array.of(-1, 2), Int16Array.of(-1, 300), Int32Array.of(-1, 70_000)]],
    ["typed arrays, unsigned", [Uint8Array.of(255), Uint16Array.of(65_535), Uint32Array.of(2 ** 32 - 1)]],
    ["typed arrays, other", [Uint8ClampedArray.of(7), Float32Array.of(0.5, -0), Float64Array.of(Number.NaN, 1e300)]],
    ["typed arrays, big", [BigInt64Array.of(-1n), BigUint64Array.of(2n ** 64n - 1n), new Uint8Array(0)]],
    ["ArrayBuffer", Uint8Array.of(1, 2, 3).buffer],
    ["DataView", new DataView(Uint8Array.of(1, 2, 3).buffer)],
    ["URL", new URL("https://user:pw@example.com:8080/a%20b?q=ü#h")],
    ["shared reference", [shared, shared, { again: shared }]],
    ["sparse array", sparse(3, { 2: 1 })],
    ["sparse array, open end", { list: sparse(3, { 0: 1 }) }],
    ["array of undefined", [undefined, undefined]],
    ["key __proto__", withProto({ polluted: true })],
    ["key __proto__ with a tagged value", withProto(new Date(0))],
    ["key constructor", { constructor: { prototype: { x: 1 } }, prototype: new Set([1]) }],
    ["key toJSON", { toJSON: "data", n: 1 }],
    ["empty key", { "": 1 }],
    ["empty key, tagged value", { "": undefined }],
    ["key of 2 MB", { ["k".repeat(2 * MIB)]: 1 }],
    ["keys that look like tags", { $date: "2026-01-01T00:00:00.000Z" }],
    ["keys that look like tags, nested", { a: { $: { $: { $undefined: true } } }, b: [{ $hole: true }, { $x: 1n }] }],
    ["keys with $ among others", { $ref: "#/a", $id: 1, $date: new Date(0) }],
    ["strings that look like tags", ['{"$date":null}', "$date", { a: "$undefined" }]],
    ["lone surrogates", ["\ud800", "\udc00", "a\udfffb", { "\ud834": 1 }]],
    ["NUL", ["\u0000", { "\u0000": "a\u0000b" }]],
    ["U+2028", "a\u2028b\u2029c"],
    ["4-byte emoji", ["😀", "👩‍👩‍👧", { "🦄": 1 }]],
    ["RTL", ["שלום", "مرحبا", "\u202etxt.exe"]],
    ["1 MiB - 1 string", "x".repeat(MIB - 1)],
    ["1 MiB string", "ü".repeat(MIB)],
    ["1 MiB + 1 string", "\u0000".repeat(MIB + 1)],
    ["64 MiB string", "y".repeat(64 * MIB)],
  ];
  it.each(kept)("I21 B64 B67 keeps %s", (_, value) => {
    const text = encode(value);
    expectSame(decode(text), value);
    expect(encode(decode(text)) === text).toBe(true);
    // Whatever the value, the text is valid Unicode without NUL: any text column takes it.
    expect(text.slice(0, 1000)).not.toMatch(/\p{Cc}|\p{Surrogate}/u);
  });

  it("I21 keeps holes apart from undefined", () => {
    const back = trip(sparse(4, { 1: undefined, 2: 1 })) as unknown[];
    expect(back).toHaveLength(4);
    expect([0 in back, 1 in back, 2 in back, 3 in back]).toEqual([false, true, true, false]);
  });

  it("I21 returns a Buffer as a Uint8Array, without the pool around it", () => {
    const back = trip({ bytes: Buffer.from("hello") }) as { bytes: Uint8Array };
    expect(back.bytes.constructor).toBe(Uint8Array);
    expect(back.bytes.buffer.byteLength).toBe(5);
    expect(new TextDecoder().decode(back.bytes)).toBe("hello");
  });

  it("I21 returns shared references as copies", () => {
    const back = trip([shared, shared]) as [object, object];
    expect(back[0]).toEqual(back[1]);
    expect(back[0]).not.toBe(back[1]);
  });

  it("I21 takes an object without a prototype as a plain one", () => {
    const bare = Object.assign(Object.create(null) as object, { a: 1, at: new Date(0) });
    expect(trip(bare)).toStrictEqual({ a: 1, at: new Date(0) });
  });

  it("I21 reads a proxy and a getter like any data", () => {
    expect(trip(new Proxy({ a: [1] }, {}))).toStrictEqual({ a: [1] });
    expect(trip(new Proxy([1, undefined], {}))).toStrictEqual([1, undefined]);
    const counted = {
      get n() {
        return 5;
      },
    };
    expect(trip(counted)).toStrictEqual({ n: 5 });
  });

  it("I21 takes values of another realm", () => {
    const foreign = vm.runInNewContext(
      `({ at: new Date(0), list: [1, , 2], map: new Map([[1, new Set([2])]]), re: /x/g, bytes: Uint8Array.of(1),
          error: new TypeError("no"), n: { a: undefined } })`,
    );
    expectSame(trip(foreign), {
      at: new Date(0),
      list: sparse(3, { 0: 1, 2: 2 }),
      map: new Map([[1, new Set([2])]]),
      re: /x/g,
      bytes: Uint8Array.of(1),
      error: new TypeError("no"),
      n: { a: undefined },
    });
  });

  const cycle: Record<string, unknown> = { name: "a" };
  cycle.self = { list: [cycle] };
  const cyclicMap = new Map<unknown, unknown>();
  cyclicMap.set("me", cyclicMap);
  const itself: { toJSON: () => unknown } = { toJSON: () => itself };
  const thrower = {
    get secret(): never {
      throw new Error("no access");
    },
  };
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  const throwing = new Proxy(
    {},
    {
      ownKeys() {
        throw new Error("trapped");
      },
    },
  );
  const refused: [string, unknown, string, RegExp][] = [
    ["symbol", Symbol("s"), "input", /is a symbol/],
    ["function", () => 1, "input", /is a function/],
    ["nested function", { items: [0, 1, 2, { callback() {} }] }, "input.items[3].callback", /is a function/],
    ["class", { Point }, "input.Point", /is a function/],
    ["class instance", { at: [new Point()] }, "input.at[0]", /instance of class Point/],
    ["array subclass", new (class List extends Array {})(), "input", /instance of class List/],
    ["Map subclass", new (class Registry extends Map {})(), "input", /instance of class Registry/],
    ["Date subclass", new (class Day extends Date {})(0), "input", /instance of class Day/],
    ["a class that calls itself Map", new { Map: class {} }.Map(), "input", /instance of class Map/],
    ["object of an object", Object.create({ inherited: 1 }), "input", /instance of class Object/],
    ["getter that throws", { user: thrower }, "input.user.secret", /reading it threw: no access/],
    ["Proxy that throws", { p: throwing }, "input.p", /reading it threw: trapped/],
    ["revoked Proxy", [revoked], "input[0]", /reading it threw/],
    ["Proxy of a Map", { m: new Proxy(new Map(), {}) }, "input.m", /reading it threw/],
    ["circular", cycle, "input.self.list[0]", /cycle/],
    ["circular Map", { m: cyclicMap }, "input.m[0].value", /cycle/],
    ["array of length 1e8", { huge: new Array(1e8) }, "input.huge", /more than 1000000/],
    ["depth 10,000", nested(10_000, (inner) => [inner]), `input${"[0]".repeat(MAX_DEPTH)}`, /64 levels/],
    ["toJSON", { toJSON: () => 1 }, "input.toJSON", /is a function/],
    ["toJSON returning itself", itself, "input.toJSON", /is a function/],
    ["promise", { later: Promise.resolve() }, "input.later", /is a promise.*Await it/],
    ["WeakMap", new WeakMap(), "input", /instance of class WeakMap/],
    ["WeakRef", new WeakRef({}), "input", /instance of class WeakRef/],
    ["boxed string", new String("s"), "input", /instance of class String/],
    ["generator", (function* () {})(), "input", /is an instance/],
    ["SharedArrayBuffer", new SharedArrayBuffer(1), "input", /instance of class SharedArrayBuffer/],
    ["match with groups", "2026".match(/(?<year>\d+)/), "input", /array with a property of its own, "groups"/],
    ["symbol as a key", { o: { [Symbol("k")]: 1 } }, "input.o", /symbol as a key, Symbol\(k\)/],
    ["odd keys", { "a b": { "": { "0": Symbol() } } }, 'input["a b"][""]["0"]', /is a symbol/],
    ["bad key in a Map", new Map([[{ f() {} }, 1]]), "input[0].key.f", /is a function/],
    ["bad value in a Set", new Set([1, () => 1]), "input[1]", /is a function/],
  ];
  it.each(refused)("I21 B66 refuses %s with its path", (_, value, path, message) => {
    const error = refusal(value, { path: "input" });
    expect(error.code).toBe("not_serializable");
    expect(error.fields.path).toBe(path);
    expect(error.message.startsWith(`${path} `)).toBe(true);
    expect(error.message).toMatch(message);
    // The last sentence says what to do.
    expect(error.message).toMatch(/\. [A-Z][^.]*\.?.*\.$/);
  });

  it("B66 shows only the start of a long key", () => {
    expect(refusal({ ["k".repeat(2 * MIB)]: Symbol() }).message.length).toBeLessThan(300);
  });

  it("B66 keeps the reason why reading failed", () => {
    expect(refusal(thrower).cause).toEqual(new Error("no access"));
  });

  it("I21 ignores what is not enumerable", () => {
    const value = Object.defineProperty({ a: undefined }, "hidden", { value: () => 1 });
    Object.defineProperty(value, Symbol("hidden"), { value: 1 });
    expect(trip(value)).toStrictEqual({ a: undefined });
  });

  it("Q8 takes duplicate keys of raw JSON as JSON does: the last one counts", () => {
    expect(decode('{"a":1,"a":2}')).toEqual({ a: 2 });
    expect(decode('{"$date":"x","$date":null}')).toEqual(new Date(Number.NaN));
  });

  it("Q8 refuses a BOM, and text that was invalid UTF-8 does no harm", () => {
    expect(() => decode("\ufeff{}")).toThrow(/cannot be read/);
    const text = new TextDecoder().decode(Uint8Array.of(0x22, 0xff, 0xc0, 0x22));
    expect(decode(text)).toBe("\ufffd\ufffd");
  });

  it("reads a number beyond all numbers as JSON does", () => {
    expect(decode("1e400")).toBe(Number.POSITIVE_INFINITY);
    expect(decode("[-1e400]")).toEqual([Number.NEGATIVE_INFINITY]);
  });
});

describe("properties", () => {
  const anyString = fc.string({ unit: "binary", maxLength: 8 });
  const key = fc.oneof(
    { weight: 3, arbitrary: anyString },
    fc.constantFrom(
      "__proto__",
      "constructor",
      "prototype",
      "toJSON",
      "toString",
      "",
      "$",
      "$date",
      "$x",
      "$hole",
      "0",
      "length",
    ),
  );
  const error = (value: fc.Arbitrary<unknown>) =>
    fc
      .tuple(fc.constantFrom(Error, TypeError, RangeError), anyString, fc.option(fc.record({ cause: value })), value)
      .map(([Class, message, options, detail]) => Object.assign(new Class(message, options ?? undefined), { detail }));
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.oneof(
        fc.constantFrom(undefined, null, true, false, Number.NaN, -0, 0, 1 / 0, -1 / 0),
        fc.double(),
        fc.integer(),
        fc.bigInt(),
        anyString,
        key,
        fc.lorem({ maxCount: 2 }),
        fc.date({ noInvalidDate: false }),
        fc.uint8Array({ maxLength: 9 }),
        fc.float64Array({ maxLength: 3 }),
        fc.bigInt64Array({ maxLength: 3 }),
        fc.constantFrom(/a|b/, /\u2028[/]/gy),
        fc.webUrl().map((url) => new URL(url)),
      ),
      fc.array(tie("value"), { maxLength: 4 }),
      fc.sparseArray(tie("value"), { maxLength: 6 }),
      fc.array(fc.tuple(key, tie("value")), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
      fc.array(fc.tuple(tie("value"), tie("value")), { maxLength: 3 }).map((entries) => new Map(entries)),
      fc.array(tie("value"), { maxLength: 3 }).map((values) => new Set(values)),
      error(tie("value")),
    ),
  }));

  it("I21 V1 decode(encode(x)) equals x", () => {
    fc.assert(
      fc.property(value, (x) => {
        const text = encode(x);
        expectSame(decode(text), x);
        expect(encode(decode(text))).toBe(text);
        expect(encode(JSON.parse(JSON.stringify(text)))).toBe(JSON.stringify(text));
      }),
      { numRuns: 2000 },
    );
  });

  it("I21 V1 a value of any kind is kept or refused, never changed", () => {
    const anything = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
      withUnicodeString: true,
    });
    fc.assert(
      fc.property(anything, (x) => {
        let text: string;
        try {
          text = encode(x);
        } catch (error) {
          expect(hasCode(error, "not_serializable")).toBe(true);
          return;
        }
        expectSame(decode(text), x);
      }),
      { numRuns: 2000 },
    );
  });

  it("V1 JSON text of any source is read as JSON, unless it looks like a tag", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        fc.pre(!text.includes('"$'));
        expectSame(decode(text), JSON.parse(text));
      }),
    );
  });

  it("Q8 V3 damaged text gives a value or corrupt_value, nothing else", () => {
    const piece = fc.constantFrom(
      '"',
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      "$",
      '"$date"',
      '{"$',
      "null",
      "0",
      "\\u0000",
      "1e999",
      "__proto__",
    );
    fc.assert(
      fc.property(value, fc.nat(), fc.nat({ max: 6 }), piece, (x, at, cut, insert) => {
        const text = encode(x);
        const start = at % (text.length + 1);
        try {
          decode(text.slice(0, start) + insert + text.slice(start + cut));
        } catch (error) {
          expect(hasCode(error, "corrupt_value")).toBe(true);
        }
      }),
      { numRuns: 5000 },
    );
  });
});
