// The journal's checksum
// MurmurHash3 (x86, 128 bits) over an entry and the checksum before it; what is long goes through SHA-256 first, which is native. It
// finds damage and careless edits. Whoever sets out to forge a journal can compute any sum that takes no key (docs/decisions/0008).
// Every step takes two, so no text is put together for it and nothing is allocated but the result.
//
//   K1. Each field begins a block of its own and its length is mixed in: no two different entries are the same input.
//   K2. Text counts as its UTF-16 units: no two different texts are the same input.
import type { Host } from "./host.ts";
import type { StoredEntry } from "./journal.ts";

/** Beyond this many units SHA-256 is faster. */
const SHORT = 512;

// The state of the one sum that is being taken.
const sum = new Int32Array(4);

/** The checksum of an entry, in 22 characters. `previous` is that of the entry before it. */
export function checksum(host: Pick<Host, "digest">, previous: string, entry: Omit<StoredEntry, "hash">): string {
  const { seq, at, type, key, data } = entry;
  const isShort = typeof data === "string" && data.length <= SHORT;
  sum[0] = seq;
  sum[1] = at / 2 ** 32;
  sum[2] = at;
  sum[3] = isShort ? 1 : 0;
  addText(previous);
  addText(type);
  if (key !== null) addText(key);
  if (data !== null) addText(isShort ? data : host.digest(data));
  return finish(type.length, key === null ? -1 : key.length, data === null ? -1 : data.length);
}

function addText(text: string): void {
  let h1 = sum[0]!;
  let h2 = sum[1]!;
  let h3 = sum[2]!;
  let h4 = sum[3]!;
  for (let i = 0; i < text.length; i += 8) {
    h1 ^= Math.imul(rotate(Math.imul(wordAt(text, i), 0x239b961b), 15), 0xab0e9789);
    h1 = (Math.imul((rotate(h1, 19) + h2) | 0, 5) + 0x561ccd1b) | 0;
    h2 ^= Math.imul(rotate(Math.imul(wordAt(text, i + 2), 0xab0e9789), 16), 0x38b34ae5);
    h2 = (Math.imul((rotate(h2, 17) + h3) | 0, 5) + 0x0bcaa747) | 0;
    h3 ^= Math.imul(rotate(Math.imul(wordAt(text, i + 4), 0x38b34ae5), 17), 0xa1e38b93);
    h3 = (Math.imul((rotate(h3, 15) + h4) | 0, 5) + 0x96cd1c35) | 0;
    h4 ^= Math.imul(rotate(Math.imul(wordAt(text, i + 6), 0xa1e38b93), 18), 0x239b961b);
    h4 = (Math.imul((rotate(h4, 13) + h1) | 0, 5) + 0x32ac3b17) | 0;
  }
  sum[0] = h1;
  sum[1] = h2;
  sum[2] = h3;
  sum[3] = h4;
}

/** Two units; past the end there are zeros. */
function wordAt(text: string, i: number): number {
  if (i + 1 < text.length) return text.charCodeAt(i) | (text.charCodeAt(i + 1) << 16);
  return i < text.length ? text.charCodeAt(i) : 0;
}

function rotate(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by));
}

function finish(length1: number, length2: number, length3: number): string {
  sum[0]! ^= length1;
  sum[1]! ^= length2;
  sum[2]! ^= length3;
  spread();
  for (let i = 0; i < 4; i++) sum[i] = avalanche(sum[i]!);
  spread();
  return textOf(sum[0]!, sum[1]!, sum[2]!, sum[3]!);
}

function spread(): void {
  sum[0]! += sum[1]! + sum[2]! + sum[3]!;
  for (let i = 1; i < 4; i++) sum[i]! += sum[0]!;
}

function avalanche(word: number): number {
  const once = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return twice ^ (twice >>> 16);
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const DIGITS = Uint8Array.from(ALPHABET, (digit) => digit.charCodeAt(0));

function digit(word: number, shift: number): number {
  return DIGITS[(word >>> shift) & 63]!;
}

/** Six bits a character; the two bits that each word has over come last. One call with all of them is by far the fastest. */
function textOf(a: number, b: number, c: number, d: number): string {
  // biome-ignore format: a word a line
  return String.fromCharCode(
    digit(a, 26), digit(a, 20), digit(a, 14), digit(a, 8), digit(a, 2),
    digit(b, 26), digit(b, 20), digit(b, 14), digit(b, 8), digit(b, 2),
    digit(c, 26), digit(c, 20), digit(c, 14), digit(c, 8), digit(c, 2),
    digit(d, 26), digit(d, 20), digit(d, 14), digit(d, 8), digit(d, 2),
    digit(((a & 3) << 4) | ((b & 3) << 2) | (c & 3), 0), digit(d & 3, 0),
  );
}
