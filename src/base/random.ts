// Chance that replays
// The numbers of a run follow from its seed alone, so they need no entry in the journal. For the same reason the
// sequence may never change: a run that was begun by one release is replayed by the next. Not for secrets: whoever
// knows the seed knows every number.

import { hex32 } from "./hex.ts";

export interface SeededRandom {
  /** From 0 up to, not including, 1, with 53 random bits. */
  next(): number;
  /** Shaped like a UUID of version 4. */
  uuid(): string;
}

/** A stream of numbers that depends on `seed` only: sfc32 by Chris Doty-Humphrey, over a 128-bit hash of the text. */
export function seededRandom(seed: string): SeededRandom {
  let [a, b, c, counter] = hash(seed);
  const draw = (): number => {
    const out = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + out) | 0;
    return out >>> 0;
  };
  // Spreads what the seed differs in over the whole state, as the author of sfc32 recommends.
  for (let i = 0; i < 15; i++) draw();
  return {
    next: () => ((draw() >>> 5) * 2 ** 26 + (draw() >>> 6)) / 2 ** 53,
    uuid() {
      const first = hex32(draw());
      const second = hex32((draw() & 0xffff0fff) | 0x4000);
      const third = hex32((draw() & 0x3fffffff) | 0x80000000);
      return `${first}-${second.slice(0, 4)}-${second.slice(4)}-${third.slice(0, 4)}-${third.slice(4)}${hex32(draw())}`;
    },
  };
}

/** A hash of a text in 32 hex digits: it finds differences, and is no secret. */
export function textHash(text: string): string {
  return hash(text).map(hex32).join("");
}

/** The hash cyrb128 (by bryc, public domain): four lanes that feed each other, one pass over the UTF-16 units. */
function hash(text: string): [number, number, number, number] {
  let h1 = 1779033703;
  let h2 = 3144134277;
  let h3 = 1013904242;
  let h4 = 2773480762;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    h1 = h2 ^ Math.imul(h1 ^ unit, 597399067);
    h2 = h3 ^ Math.imul(h2 ^ unit, 2869860233);
    h3 = h4 ^ Math.imul(h3 ^ unit, 951274213);
    h4 = h1 ^ Math.imul(h4 ^ unit, 2716044179);
  }
  h1 = Math.imul(h3 ^ (h1 >>> 18), 597399067);
  h2 = Math.imul(h4 ^ (h2 >>> 22), 2869860233);
  h3 = Math.imul(h1 ^ (h3 >>> 17), 951274213);
  h4 = Math.imul(h2 ^ (h4 >>> 19), 2716044179);
  h1 ^= h2 ^ h3 ^ h4;
  h2 ^= h1;
  h3 ^= h1;
  h4 ^= h1;
  return [h1 | 0, h2 | 0, h3 | 0, h4 | 0];
}
