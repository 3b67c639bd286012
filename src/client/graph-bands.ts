// Bands of a graph
// Brings the items of each band into an order with few crossings, and then moves them to where their edges run straightest.

/** A box, or the slot of an edge that passes. */
export interface Item {
  readonly rank: number;
  width: number;
  height: number;
  readonly isBox: boolean;
  /** Its middle. */
  x: number;
  readonly above: Item[];
  readonly below: Item[];
}

/** Between two items of a band. */
const ITEM_GAP = 26;
const ORDER_SWEEPS = 12;
const MOVE_SWEEPS = 40;
const STRAIGHTEN_SWEEPS = 4;

/** The bands from top to bottom, each from left to right, with every item in its place. */
export function orderBands(items: readonly Item[]): Item[][] {
  const count = Math.max(0, ...items.map(({ rank }) => rank + 1));
  let bands = Array.from({ length: count }, (_, rank) => items.filter((item) => item.rank === rank));
  let best = bands;
  for (let sweep = 0; sweep < ORDER_SWEEPS; sweep++) {
    bands = sorted(bands, sweep % 2 === 0);
    if (crossingsOf(bands) < crossingsOf(best)) best = bands;
  }
  place(best);
  for (let sweep = 0; sweep < STRAIGHTEN_SWEEPS; sweep++) straighten(best, sweep % 2 === 0);
  return best;
}

/** Each item to the middle of those it is joined with, in the band before. */
function sorted(bands: readonly Item[][], isDown: boolean): Item[][] {
  const result = bands.map((band) => [...band]);
  const ranks = result.map((_, rank) => rank);
  for (const rank of isDown ? ranks : ranks.reverse()) {
    const neighbours = result[isDown ? rank - 1 : rank + 1];
    const band = result[rank]!;
    if (neighbours === undefined) continue;
    const position = new Map(neighbours.map((item, i) => [item, i]));
    const weights = new Map(
      band.map((item, i) => {
        const joined = (isDown ? item.above : item.below).map((one) => position.get(one) ?? 0);
        return [item, joined.length === 0 ? i : joined.reduce((sum, one) => sum + one, 0) / joined.length];
      }),
    );
    band.sort((a, b) => weights.get(a)! - weights.get(b)!);
  }
  return result;
}

function crossingsOf(bands: readonly Item[][]): number {
  let count = 0;
  for (const [rank, band] of bands.entries()) {
    const position = new Map((bands[rank + 1] ?? []).map((item, i) => [item, i]));
    const ends = band.flatMap((item, i) => item.below.map((one) => [i, position.get(one) ?? 0] as const));
    for (const [a, b] of ends) for (const [c, d] of ends) if (a < c && b > d) count += 1;
  }
  return count;
}

function place(bands: readonly Item[][]): void {
  for (const band of bands) settle(band, (item) => item.x);
  for (let sweep = 0; sweep < MOVE_SWEEPS; sweep++) {
    const isDown = sweep % 2 === 0;
    for (const band of isDown ? bands : [...bands].reverse()) {
      const joined = (item: Item) =>
        sweep > MOVE_SWEEPS - 4 ? [...item.above, ...item.below] : isDown ? item.above : item.below;
      settle(band, (item) => meanOf(joined(item), item.x));
    }
  }
}

/** Slots of one edge come to stand in a line, where there is room. */
function straighten(bands: readonly Item[][], isDown: boolean): void {
  for (const band of isDown ? bands : [...bands].reverse())
    for (const [i, item] of band.entries()) {
      const [other] = isDown ? item.above : item.below;
      if (item.isBox || other === undefined || other.isBox) continue;
      const roomTo = (next: Item | undefined) => (next === undefined ? 0 : (next.width + item.width) / 2 + ITEM_GAP);
      const left = (band[i - 1]?.x ?? Number.NEGATIVE_INFINITY) + roomTo(band[i - 1]);
      const right = (band[i + 1]?.x ?? Number.POSITIVE_INFINITY) - roomTo(band[i + 1]);
      item.x = Math.min(Math.max(other.x, left), Math.max(left, right));
    }
}

function meanOf(items: readonly Item[], otherwise: number): number {
  return items.length === 0 ? otherwise : items.reduce((sum, { x }) => sum + x, 0) / items.length;
}

/** As near to where each item wants to be as the others of its band allow: runs of items that would overlap move as one. */
function settle(band: readonly Item[], wanted: (item: Item) => number): void {
  const runs: { items: Item[]; offsets: number[]; x: number }[] = [];
  for (const item of band) {
    let run = { items: [item], offsets: [0], x: wanted(item) };
    for (
      let last = runs.at(-1);
      last !== undefined && endOf(last) > run.x - run.items[0]!.width / 2;
      last = runs.at(-1)
    ) {
      runs.pop();
      run = joinedRuns(last, run, wanted);
    }
    runs.push(run);
  }
  for (const { items, offsets, x } of runs)
    items.forEach((item, i) => {
      item.x = x + offsets[i]!;
    });
}

interface Run {
  readonly items: Item[];
  /** From the first item's middle. */
  readonly offsets: number[];
  readonly x: number;
}

function endOf({ items, offsets, x }: Run): number {
  return x + offsets.at(-1)! + items.at(-1)!.width / 2 + ITEM_GAP;
}

function joinedRuns(left: Run, right: Run, wanted: (item: Item) => number): Run {
  const items = [...left.items, ...right.items];
  const first = right.items[0]!;
  const gap = left.offsets.at(-1)! + left.items.at(-1)!.width / 2 + ITEM_GAP + first.width / 2;
  const offsets = [...left.offsets, ...right.offsets.map((offset) => offset + gap)];
  // Slots pull harder: a long edge is to be straight.
  const weights = items.map(({ isBox }) => (isBox ? 1 : 3));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const x = items.reduce((sum, item, i) => sum + weights[i]! * (wanted(item) - offsets[i]!), 0) / total;
  return { items, offsets, x };
}
