import { createDecipheriv, createHash, hkdfSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type FieldAddress, jsonCodec } from "../base/envelope.ts";
import { hasCode } from "../base/errors.ts";
import { keyOf, readSealed } from "../base/sealed-text.ts";
import { defaultCodec } from "../stores/default-codec.ts";
import { type EncryptionOptions, Keyring } from "./keyring.ts";

const bytes = (fill: number) => new Uint8Array(32).fill(fill);
const K1 = { id: "k1", key: bytes(1) };
const K2 = { id: "k2", key: bytes(2) };
const AT: FieldAddress = { run: "r1", seq: 3, field: "data" };
const ring = (options: Partial<EncryptionOptions> = {}) => new Keyring({ keys: [K1], ...options });

const thrown = (fn: () => unknown): unknown => {
  try {
    fn();
  } catch (error) {
    return error;
  }
  return null;
};
const isRefused = (fn: () => unknown) => hasCode(thrown(fn), "corrupt_value");

describe("the keyring", () => {
  it("Q14 gives back what it was given, text and bytes, and says nothing of it", () => {
    const codec = ring().codec(defaultCodec);
    for (const text of ["", '"ä€🦩"', JSON.stringify("long and repetitive ".repeat(5000))]) {
      const sealed = codec.seal(text, AT) as string;
      expect(sealed).toMatch(/^v1\.k1\.[\w-]{16}\.[\w-]*\.[\w-]{22}$/);
      expect(codec.unseal(sealed, AT)).toBe(text);
    }
    const sealed = ring().seal(bytes(9), AT);
    expect(ring().open(sealed, AT)).toEqual(bytes(9));
  });

  it("Q14 no two values have a nonce in common, also of the same text at the same place", () => {
    const keyring = ring();
    const nonces = Array.from({ length: 1000 }, () => readSealed(keyring.seal("x", AT))?.nonce);
    expect(new Set(nonces).size).toBe(1000);
  });

  it("Q14 refuses a value at any other place: run, position, field, tenant", () => {
    const sealed = ring({ tenant: "a" }).seal('"x"', AT);
    const open = (at: Partial<FieldAddress>, tenant = "a") => ring({ tenant }).open(sealed, { ...AT, ...at });
    expect(open({})).toBe('"x"');
    expect(isRefused(() => open({ run: "r2" }))).toBe(true);
    expect(isRefused(() => open({ seq: 4 }))).toBe(true);
    expect(isRefused(() => open({ field: "state:x" }))).toBe(true);
    expect(isRefused(() => open({}, "b"))).toBe(true);
    // A run that is called like two parts of another place is another place.
    const odd = ring().seal("x", { run: 'r1",3', seq: 4, field: "data" });
    expect(isRefused(() => ring().open(odd, { run: "r1", seq: 3, field: "data" }))).toBe(true);
  });

  it("Q14 refuses whatever was flipped or cut short, bit by bit", () => {
    const keyring = ring();
    const sealed = keyring.seal('{"amount":100}', AT);
    const [, , nonce, ciphertext, tag] = sealed.split(".") as [string, string, string, string, string];
    for (const [part, text] of [
      [2, nonce],
      [3, ciphertext],
      [4, tag],
    ] as const) {
      const raw = Buffer.from(text, "base64url");
      for (let bit = 0; bit < raw.length * 8; bit++) {
        const flipped = Buffer.from(raw);
        flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7));
        const parts = sealed.split(".");
        parts[part] = flipped.toString("base64url");
        expect(
          isRefused(() => keyring.open(parts.join("."), AT)),
          `part ${part}, bit ${bit}`,
        ).toBe(true);
      }
    }
    const cut = `v1.k1.${nonce}.${ciphertext.slice(0, -4)}.${tag}`;
    expect(isRefused(() => keyring.open(cut, AT))).toBe(true);
    // A shorter tag would be easier to guess: it is no sealed value at all.
    expect(keyOf(`v1.k1.${nonce}.${ciphertext}.${tag.slice(0, 16)}`)).toBeNull();
  });

  it("Q14 refuses a value whose key id was changed to that of another key", () => {
    const both = new Keyring({ keys: [K1, K2] });
    const sealed = both.seal('"x"', AT);
    expect(isRefused(() => both.open(sealed.replace("v1.k1.", "v1.k2."), AT))).toBe(true);
  });

  it("Q14 seals with the first key and opens with all; a key that is not there is named", () => {
    const old = ring().seal('"old"', AT);
    const rotated = new Keyring({ keys: [K2, K1] });
    expect(rotated.open(old, AT)).toBe('"old"');
    expect(keyOf(rotated.seal('"new"', AT))).toBe("k2");
    const error = thrown(() => new Keyring({ keys: [K2] }).open(old, AT));
    expect(error).toMatchObject({ code: "key_missing", fields: { key: "k1", run: "r1", seq: 3 } });
  });

  it("Q14 reads what is older than the encryption, unless it is told that there is no such thing", () => {
    expect(ring().codec(jsonCodec).unseal('{"a":1}', AT)).toBe('{"a":1}');
    expect(isRefused(() => ring({ plain: "refuse" }).codec(jsonCodec).unseal('{"a":1}', AT))).toBe(true);
  });

  it("Q14 the same name is the same text, under one key for good, and no other name is", () => {
    const before = ring({ names: "k1" }).names;
    const after = new Keyring({ keys: [K2, K1], names: "k1" }).names;
    const sealed = before?.seal("charge") ?? "";
    expect(sealed).not.toContain("charge");
    expect(after?.seal("charge")).toBe(sealed);
    expect(after?.open(sealed)).toBe("charge");
    expect(before?.seal("charge#2")).not.toBe(sealed);
    expect(before?.open("plain")).toBe("plain");
  });

  it("Q14 a value can be opened by hand, as the decision record says: the format is for good", () => {
    const [, , nonce, ciphertext, tag] = ring({ tenant: "t" })
      .seal('"x"', AT)
      .split(".")
      .map((part) => Buffer.from(part, "base64url"));
    const info = createHash("sha256").update('["pawl v1","run","t","r1"]').digest();
    const key = new Uint8Array(hkdfSync("sha256", K1.key, new Uint8Array(0), info, 32));
    const decipher = createDecipheriv("aes-256-gcm", key, nonce as Buffer);
    decipher.setAAD(Buffer.from('["v1","k1","t","r1",3,"data"]')).setAuthTag(tag as Buffer);
    const plain = Buffer.concat([decipher.update(ciphertext as Buffer), decipher.final()]);
    expect(plain.toString("latin1")).toBe('\0"x"');
  });

  it("Q14 a key is 32 bytes with an id of its own; what it is stays unsaid", () => {
    const bad: unknown[] = [
      { keys: [] },
      { keys: "k1" },
      { keys: [null] },
      { keys: [{ id: "a.b", key: bytes(1) }] },
      { keys: [{ id: "k1", key: "sesame open" }] },
      { keys: [K1, K1] },
      { keys: [K1], names: "k9" },
      { keys: [K1], plain: "maybe" },
      { keys: [K1], tenant: 1 },
    ];
    for (const options of bad) {
      const error = thrown(() => new Keyring(options as EncryptionOptions)) as Error;
      expect(error, JSON.stringify(options)).toMatchObject({ code: "invalid_argument" });
      expect(error.message).not.toContain("sesame");
    }
    expect(new Keyring({ keys: [{ id: "k1", key: Buffer.from(bytes(1)).toString("base64") }] }).current).toBe("k1");
  });
});
