import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nodeHost } from "../worker/node-host.ts";
import { checksum } from "./checksum.ts";
import type { StoredEntry } from "./journal.ts";

type Summed = Omit<StoredEntry, "hash">;

const entry: Summed = { seq: 3, at: 1_767_225_600_000, type: "step.completed", key: "charge", data: '{"paid":true}' };
const sumOf = (changed: Partial<Summed> = {}, previous = "p".repeat(22)) =>
  checksum(nodeHost, previous, { ...entry, ...changed });

describe("the journal's checksum", () => {
  it("P35 Q15 E-22 is another one whenever anything about the entry or the one before it differs", () => {
    const changes: Partial<Summed>[] = [
      {},
      { seq: 4 },
      { at: entry.at + 1 },
      { at: entry.at + 2 ** 32 },
      { type: "step.failed" },
      { key: "charge#2" },
      { key: null },
      { key: "" },
      { data: null },
      { data: "" },
      { data: '{"paid":null}' },
      { key: 'charge{"paid"', data: ":true}" },
      { data: new TextEncoder().encode(entry.data as string) },
    ];
    const sums = [...changes.map((change) => sumOf(change)), sumOf({}, "q".repeat(22))];
    expect(new Set(sums).size).toBe(sums.length);
    for (const sum of sums) expect(sum).toMatch(/^[\w-]{22}$/);
  });

  it("P35 tells apart what would be the same text if the fields were put together", () => {
    expect(sumOf({ key: "abcdefgh", data: "ijklmnop" })).not.toBe(sumOf({ key: "abcdefghijklmnop", data: null }));
    expect(sumOf({ key: "abcdefgh", data: "ijklmnop" })).not.toBe(sumOf({ key: "abcdefghijklmnop", data: "" }));
    expect(sumOf({ data: "a" })).not.toBe(sumOf({ data: "a\0" }));
  });

  it("P35 finds one flipped bit anywhere in long values, text or bytes", () => {
    const text = "x".repeat(5000);
    const flipped = (at: number) => `${text.slice(0, at)}y${text.slice(at + 1)}`;
    const bytes = (at: number) => Uint8Array.from({ length: 5000 }, (_, i) => (i === at ? 1 : 0));
    const sums = [
      ...[0, 511, 512, 4999].map((at) => sumOf({ data: flipped(at) })),
      ...[0, 15, 16, 4999].map((at) => sumOf({ data: bytes(at) })),
    ];
    expect(new Set([...sums, sumOf({ data: text })]).size).toBe(9);
  });

  it("P35 is what the published algorithm gives, computed here the slow way", () => {
    const field = fc.string({ unit: "binary", maxLength: 40 });
    fc.assert(
      fc.property(field, fc.nat(), fc.nat({ max: 2 ** 45 }), field, fc.option(field), fc.option(field), (...fields) => {
        const [previous, seq, at, type, key, data] = fields;
        expect(checksum(nodeHost, previous, { seq, at, type, key, data } as Summed)).toBe(
          slowSum(previous, { seq, at, type, key, data } as Summed),
        );
      }),
      { numRuns: 500 },
    );
  });
});

// MurmurHash3_x86_128 by its published description, in arithmetic that cannot overflow. The numbers are the seed; each text is padded to
// whole blocks with zeros; the lengths are mixed in where the algorithm mixes in its one.
const MASK = 0xffff_ffffn;
const MULTIPLIERS = [0x239b961bn, 0xab0e9789n, 0x38b34ae5n, 0xa1e38b93n];
const rotate = (word: bigint, by: bigint) => ((word << by) | (word >> (32n - by))) & MASK;
const LANES = [
  { first: 15n, second: 19n, add: 0x561ccd1bn },
  { first: 16n, second: 17n, add: 0x0bcaa747n },
  { first: 17n, second: 15n, add: 0x96cd1c35n },
  { first: 18n, second: 13n, add: 0x32ac3b17n },
];

function slowSum(previous: string, { seq, at, type, key, data }: Summed): string {
  const isShort = typeof data === "string" && data.length <= 512;
  const state = [seq, Math.floor(at / 2 ** 32), at % 2 ** 32, isShort ? 1 : 0].map(BigInt);
  for (const text of [previous, type, key, data]) if (typeof text === "string") absorb(state, text);
  const lengths = [type.length, key?.length ?? -1, data?.length ?? -1, 0];
  for (let i = 0; i < 4; i++) state[i] = state[i]! ^ (BigInt(lengths[i]!) & MASK);
  spread(state);
  for (let i = 0; i < 4; i++) state[i] = avalanche(state[i]!);
  spread(state);
  const bits = state.map((word) => word.toString(2).padStart(32, "0"));
  const tail = bits.map((word) => word.slice(30)).join("");
  const digits = [...bits.map((word) => word.slice(0, 30)), tail.slice(0, 6), tail.slice(6).padStart(6, "0")].join("");
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return (digits.match(/.{6}/g) ?? []).map((six) => alphabet[Number.parseInt(six, 2)]).join("");
}

function absorb(state: bigint[], text: string): void {
  const padded = text.padEnd(Math.ceil(text.length / 8) * 8, "\0");
  for (let i = 0; i < padded.length; i += 2) {
    const lane = (i / 2) % 4;
    const { first, second, add } = LANES[lane]!;
    const word = BigInt(padded.charCodeAt(i)) | (BigInt(padded.charCodeAt(i + 1)) << 16n);
    const mixed = (rotate((word * MULTIPLIERS[lane]!) & MASK, first) * MULTIPLIERS[(lane + 1) % 4]!) & MASK;
    state[lane] = ((rotate(state[lane]! ^ mixed, second) + state[(lane + 1) % 4]!) * 5n + add) & MASK;
  }
}

function spread(state: bigint[]): void {
  state[0] = state.reduce((total, word) => total + word, 0n) & MASK;
  for (let i = 1; i < 4; i++) state[i] = (state[i]! + state[0]!) & MASK;
}

function avalanche(word: bigint): bigint {
  const once = ((word ^ (word >> 16n)) * 0x85ebca6bn) & MASK;
  const twice = ((once ^ (once >> 13n)) * 0xc2b2ae35n) & MASK;
  return twice ^ (twice >> 16n);
}
