import { describe, expect, it } from "vitest";
import { seededRandom } from "./random.ts";

const UUID_4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const PINNED: { seed: string; numbers: number[]; uuid: string; after: number }[] = [
  {
    seed: "",
    numbers: [0.563619440584813, 0.00736234302447647, 0.9732470711915172],
    uuid: "7a149b35-4ad6-42f1-8236-0cc7ea78847f",
    after: 0.07551719761739617,
  },
  {
    seed: "a",
    numbers: [0.8553963171739704, 0.771273960976568, 0.9324277655378495],
    uuid: "ac0758dd-3889-4488-b609-1c6ad18f16a6",
    after: 0.33909447702392936,
  },
  {
    seed: "01890a5d-ac96-774b-bcce-b302099a8057",
    numbers: [0.8463830245591689, 0.818035402104273, 0.7251662368554861],
    uuid: "a8fe06c6-c1f5-4f42-b573-cefca240d078",
    after: 0.17854777493064222,
  },
  {
    seed: "01890a5d-ac96-774b-bcce-b302099a8057\u00001",
    numbers: [0.742929594061138, 0.18510218497285202, 0.2869948803657969],
    uuid: "bb4e273f-9846-46b5-8f83-0ecdc3fcabb7",
    after: 0.9042841149330586,
  },
  {
    seed: "日本 😀 \ud800",
    numbers: [0.6814509104600085, 0.10563546195993667, 0.8237037645440017],
    uuid: "942089df-e6e3-4774-8393-88d6f28b41ad",
    after: 0.42744677546754895,
  },
];

describe("seededRandom", () => {
  it("I5 never changes its sequence: journals of every release depend on it", () => {
    expect(PINNED.map(({ seed }) => sample(seed))).toEqual(PINNED);
  });

  it("I5 is a function of the seed alone", () => {
    const [a, b] = [seededRandom("run/1"), seededRandom("run/1")];
    for (let i = 0; i < 1000; i++) expect(a.next()).toBe(b.next());
    expect(a.uuid()).toBe(b.uuid());
  });

  it("stays in [0, 1) and uses all 53 bits", () => {
    const { next } = seededRandom("bits");
    let ones = 0n;
    let zeros = 0n;
    for (let i = 0; i < 10_000; i++) {
      const value = next();
      expect(value >= 0 && value < 1).toBe(true);
      const bits = BigInt(value * 2 ** 53);
      ones |= bits;
      zeros |= ~bits & (2n ** 53n - 1n);
    }
    expect([ones, zeros]).toEqual([2n ** 53n - 1n, 2n ** 53n - 1n]);
  });

  it("is even, over one stream and over the first numbers of like seeds", () => {
    const { next } = seededRandom("even");
    expect(chiSquare(() => next())).toBeLessThan(160);
    let n = 0;
    expect(chiSquare(() => seededRandom(`01890a5d-ac96-774b-bcce-${n++}`).next())).toBeLessThan(160);
  });

  it("gives like seeds nothing in common", () => {
    const seeds = ["", "a", "b", "aa", "ab", "ba", "\u0000", "\u0000\u0000", "run#1", "run#2", "run#12", "\ud800"];
    for (let i = 0; i < 50_000; i++) seeds.push(`run-${i}`);
    expect(new Set(seeds.map((seed) => seededRandom(seed).uuid())).size).toBe(seeds.length);
  });

  it("makes UUIDs of the shape of version 4", () => {
    const { uuid } = seededRandom("shape");
    for (let i = 0; i < 1000; i++) expect(uuid()).toMatch(UUID_4);
  });
});

/** Over 100 boxes; above 160 happens by chance once in ten thousand. The seeds are fixed, so it passes or not for good. */
function chiSquare(draw: () => number): number {
  const boxes = new Array<number>(100).fill(0);
  for (let i = 0; i < 100_000; i++) boxes[Math.floor(draw() * 100)]! += 1;
  return boxes.reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0);
}

function sample(seed: string): (typeof PINNED)[number] {
  const random = seededRandom(seed);
  return { seed, numbers: [random.next(), random.next(), random.next()], uuid: random.uuid(), after: random.next() };
}
