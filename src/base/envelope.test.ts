import { brotliCompressSync, brotliDecompressSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encode } from "./codec.ts";
import { type Codec, compressing, type FieldAddress, jsonCodec } from "./envelope.ts";

const at: FieldAddress = { run: "r1", seq: 3, field: "output" };
const brotli = { compress: brotliCompressSync, decompress: brotliDecompressSync, thresholdBytes: 100 };
const large = encode({ text: "größer ".repeat(1000) });

/** Stands in for encryption: bytes, bound to their address. */
const binary: Codec = {
  id: "xor",
  seal: (text, { seq }) => new TextEncoder().encode(text).map((byte) => byte ^ seq),
  unseal: (data, { seq }) => new TextDecoder().decode((data as Uint8Array).map((byte) => byte ^ seq)),
};

describe("jsonCodec", () => {
  it("is the text itself", () => {
    expect(jsonCodec.seal(large, at)).toBe(large);
    expect(jsonCodec.unseal(large, at)).toBe(large);
  });

  it("reads text that a store gives back as bytes", () => {
    expect(jsonCodec.unseal(new TextEncoder().encode(large), at)).toBe(large);
  });

  it("says where invalid bytes are", () => {
    expect(() => jsonCodec.unseal(Uint8Array.of(0xff), at)).toThrow(
      expect.objectContaining({
        code: "corrupt_value",
        fields: at,
        message: expect.stringMatching(/^The output of entry 3 of run r1 cannot be read: it is not valid UTF-8/),
      }),
    );
  });
});

describe("compressing", () => {
  const codec = compressing(jsonCodec, brotli);

  it("leaves small values readable and makes large ones small", () => {
    expect(codec.seal('{"a":1}', at)).toBe('{"a":1}');
    const sealed = codec.seal(large, at) as Uint8Array;
    expect(sealed.length).toBeLessThan(200);
    expect(codec.unseal(sealed, at)).toBe(large);
  });

  it("counts the threshold in bytes", () => {
    expect(codec.seal("x".repeat(99), at)).toBeTypeOf("string");
    expect(codec.seal("x".repeat(100), at)).toBeInstanceOf(Uint8Array);
    expect(codec.seal("é".repeat(50), at)).toBeInstanceOf(Uint8Array);
  });

  it("keeps what does not become smaller", () => {
    const stubborn = compressing(jsonCodec, { ...brotli, compress: (bytes) => new Uint8Array(bytes.length) });
    expect(stubborn.seal(large, at)).toBe(large);
  });

  it("reads a mixed set: before and after, text and bytes", () => {
    const bytes = new TextEncoder().encode(large);
    for (const data of [large, bytes, codec.seal(large, at)]) expect(codec.unseal(data, at)).toBe(large);
  });

  it("has the id of what it wraps, since it reads all of that", () => {
    expect(codec.id).toBe("json");
  });

  it("I21 gives every text back, around text and around bytes", () => {
    for (const inner of [jsonCodec, binary]) {
      const wrapped = compressing(inner, brotli);
      fc.assert(
        fc.property(fc.jsonValue(), fc.nat({ max: 40 }), (value, times) => {
          const text = encode(new Array(times).fill(value));
          expect(wrapped.unseal(wrapped.seal(text, at), at)).toBe(text);
        }),
      );
    }
  });

  it("names the place of damaged data", () => {
    const sealed = codec.seal(large, at) as Uint8Array;
    expect(() => codec.unseal(sealed.slice(0, -3), at)).toThrow(/^The output of entry 3 of run r1 cannot be read/);
  });
});
