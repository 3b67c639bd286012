import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assertName, createIds, isName } from "./ids.ts";

const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("createIds", () => {
  it("makes UUIDs of version 7 that carry the time", () => {
    const id = createIds({ now: () => 0x0123456789ab, randomBytes }).next();
    expect(id).toMatch(UUID_7);
    expect(id.startsWith("01234567-89ab-7")).toBe(true);
  });

  it("grows within a millisecond, past the end of its counter", () => {
    const ids = createIds({ now: () => 1_700_000_000_000, randomBytes });
    const made = Array.from({ length: 20_000 }, () => ids.next());
    expect(made).toEqual([...made].sort());
    expect(new Set(made).size).toBe(made.length);
    for (const id of made) expect(id).toMatch(UUID_7);
  });

  it("grows whatever the clock does", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 2 ** 41 }), { minLength: 2, maxLength: 200 }), (times) => {
        let at = 0;
        const ids = createIds({ now: () => times[at++]!, randomBytes });
        const made = times.map(() => ids.next());
        for (let i = 1; i < made.length; i++) expect(made[i]! > made[i - 1]!).toBe(true);
      }),
    );
  });

  it("depends on its sources alone", () => {
    const make = () => createIds({ now: () => 5, randomBytes: (count) => new Uint8Array(count).fill(0xff) });
    expect(make().next()).toBe("00000000-0005-77ff-bfff-ffffffffffff");
    const [a, b] = [make(), make()];
    for (let i = 0; i < 100; i++) expect(a.next()).toBe(b.next());
  });

  it("keeps two makers with the same clock apart", () => {
    const makers = [createIds({ now: () => 5, randomBytes }), createIds({ now: () => 5, randomBytes })];
    const made = makers.flatMap((ids) => Array.from({ length: 1000 }, () => ids.next()));
    expect(new Set(made).size).toBe(made.length);
  });

  it("refuses a time that does not fit", () => {
    for (const time of [-1, Number.NaN, 2 ** 48]) {
      expect(() => createIds({ now: () => time, randomBytes }).next()).toThrow(/48 bits/);
    }
  });
});

describe("names", () => {
  it.each([
    "a",
    "charge-card",
    "charge card",
    "order.created",
    "v1.2_3",
    "Ünïcode",
    "注文",
    "💳 charge",
    "👩‍👩‍👧",
    "con",
    "CON",
    "...",
    ".hidden",
    "%00",
    "%2e%2e",
    "'; drop table runs; --",
    'say "hi"',
    "__proto__",
    "constructor",
    "toString",
    "аdmin",
    "admin",
    "ADMIN",
    "a:b@c+d=e,f",
    "x".repeat(256),
    "é".repeat(128),
    "01890a5d-ac96-774b-bcce-b302099a8057",
  ])("Q7 accepts %j", (text) => {
    expect(isName(text)).toBe(true);
    expect(() => assertName("step name", text)).not.toThrow();
  });

  it.each([
    ["", "it is empty"],
    ["x".repeat(257), "longer than 256 bytes"],
    ["é".repeat(129), "longer than 256 bytes"],
    ["x".repeat(4096), "longer than 256 bytes"],
    ["x".repeat(5_000_000), "longer than 256 bytes"],
    ["../etc/passwd", "reserved"],
    ["a/b", "reserved"],
    ["charge#2", "reserved"],
    ["..\\windows", "backslash"],
    [".", "directory"],
    ["..", "directory"],
    [" a", "space"],
    ["a ", "space"],
    [" ", "space"],
    ["\u00a0a", "space"],
    ["a\u2003", "space"],
    ["a\n", "space"],
    ["a\u0000b", "control character"],
    ["a\nb", "control character"],
    ["a\u007fb", "control character"],
    ["a\u0085b", "control character"],
    ["a\u2028b", "control character"],
    ["\u202egpj.exe", "control character"],
    ["a\ud800", "Unicode"],
    ["\udc00a", "Unicode"],
    [undefined, "must be text"],
    [null, "must be text"],
    [5, "must be text"],
    [{ toString: () => "a" }, "must be text"],
  ])("Q7 refuses %j", (text, rule) => {
    expect(isName(text)).toBe(false);
    expect(() => assertName("step name", text)).toThrow(
      expect.objectContaining({ code: "invalid_name", message: expect.stringContaining(rule) }),
    );
  });

  it("Q7 names field, value and rule, on one printable line", () => {
    expect(() => assertName("signal name", "a\u0000\u202eb")).toThrow(
      'signal name "a\\u0000\\u202eb" cannot be used: it has a control character. A name is 1 to 256 bytes of printable text without "#", "/" and "\\".',
    );
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), (text) => {
        try {
          assertName("key", text);
        } catch (error) {
          expect((error as Error).message).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}]/u);
          expect((error as Error).message.length).toBeLessThan(600);
        }
      }),
    );
  });

  it("Q7 holds different spellings for different names", () => {
    expect(isName("é") && isName("e\u0301")).toBe(true);
  });
});
