// Base64 by hand: this layer knows no Buffer, and `btoa` works on strings of bytes only.

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const PAD = 61;
const INVALID = 255;

const codes = Uint8Array.from(ALPHABET, (letter) => letter.charCodeAt(0));
const digits = new Uint8Array(256).fill(INVALID);
for (let i = 0; i < codes.length; i++) digits[codes[i]!] = i;

export function toBase64(bytes: Uint8Array): string {
  const out = new Uint8Array(Math.ceil(bytes.length / 3) * 4);
  let at = 0;
  for (let i = 0; i < bytes.length; i += 3) {
    const bits = (bytes[i]! << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    out[at++] = codes[bits >> 18]!;
    out[at++] = codes[(bits >> 12) & 63]!;
    out[at++] = i + 1 < bytes.length ? codes[(bits >> 6) & 63]! : PAD;
    out[at++] = i + 2 < bytes.length ? codes[bits & 63]! : PAD;
  }
  return new TextDecoder().decode(out);
}

/** The bytes of `text`, or null if it is not what `toBase64` writes. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  if (text.length % 4 !== 0) return null;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  const end = text.length - padding;
  let at = 0;
  for (let i = 0; i < text.length; i += 4) {
    let bits = 0;
    for (let j = i; j < i + 4; j++) {
      const digit = j < end ? (digits[text.charCodeAt(j)] ?? INVALID) : 0;
      if (digit === INVALID) return null;
      bits = (bits << 6) | digit;
    }
    // Writes past the end of a typed array are ignored: that is where the padding goes.
    bytes[at++] = bits >> 16;
    bytes[at++] = bits >> 8;
    bytes[at++] = bits;
  }
  return bytes;
}
