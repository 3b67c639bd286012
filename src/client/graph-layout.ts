// The layout of a graph
// Layers from top to bottom. Boxes stand in bands; an edge that passes a band has a slot of its own in it, and bends only between bands: so no edge
// crosses a box.
import { type Item, orderBands } from "./graph-bands.ts";

export interface BoxSize {
  readonly id: string;
  readonly width: number;
  readonly height: number;
}

export interface EdgeShape {
  readonly from: string;
  readonly to: string;
  /** 0: it has no label. */
  readonly labelWidth: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** An edge passes these points, straight down or up within a band and in a bend between two. */
export interface PlacedEdge {
  readonly points: readonly Point[];
  /** The middle of its label. */
  readonly label: Point | null;
  /** It leads back to where it comes from. */
  readonly isLoop: boolean;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  /** The middle of each box. */
  readonly boxes: ReadonlyMap<string, Point>;
  /** In the order in which they were given. */
  readonly edges: readonly PlacedEdge[];
}

const MARGIN = 24;
const BAND_GAP = 22;
const LABEL_BAND = 20;
const SLOT_WIDTH = 14;
const LOOP_WIDTH = 30;
const PORT_GAP = 36;
const PORT_INSET = 14;

interface Link {
  readonly edge: EdgeShape;
  readonly index: number;
  /** It leads up, and is laid out as if it led down. */
  readonly isBack: boolean;
  /** From the upper box to the lower one. */
  items: readonly Item[];
  labelItem: Item | null;
}

export function layOut(start: string, boxes: readonly BoxSize[], edges: readonly EdgeShape[]): Layout {
  const back = backEdges(start, boxes, edges);
  const ranks = ranksOf(boxes, edges, back);
  const items = new Map(boxes.map((box) => [box.id, boxItem(box, (ranks.get(box.id) ?? 0) * 2)]));
  const links = edges.flatMap((edge, index): Link[] => {
    if (edge.from === edge.to) return [];
    return [{ edge, index, isBack: back.has(index), items: [], labelItem: null }];
  });
  for (const link of links) threadLink(link, items);
  const bands = orderBands([...items.values(), ...links.flatMap((link) => link.items.slice(1, -1))]);
  const tops = topsOf(bands);
  const shift = MARGIN - Math.min(...bands.flat().map(({ x, width }) => x - width / 2));
  for (const item of bands.flat()) item.x += shift;
  const placed = placeEdges(edges, links, items, tops);
  const right = Math.max(...bands.flat().map(({ x, width }) => x + width / 2));
  const last = tops.at(-1);
  return {
    width: right + MARGIN,
    height: (last === undefined ? 0 : last.top + last.height) + MARGIN,
    boxes: new Map([...items].map(([id, item]) => [id, { x: item.x, y: middleOf(item, tops) }])),
    edges: placed,
  };
}

function boxItem({ width, height }: BoxSize, rank: number): Item {
  // A place for what loops beside the box is part of it.
  return { rank, width, height, isBox: true, x: 0, above: [], below: [] };
}

/** Edges that lead back to where a walk from the start has come from. */
function backEdges(start: string, boxes: readonly BoxSize[], edges: readonly EdgeShape[]): ReadonlySet<number> {
  const back = new Set<number>();
  const state = new Map<string, "open" | "done">();
  const visit = (id: string) => {
    if (state.has(id)) return;
    state.set(id, "open");
    edges.forEach(({ from, to }, index) => {
      if (from !== id) return;
      if (state.get(to) === "open") back.add(index);
      else visit(to);
    });
    state.set(id, "done");
  };
  for (const id of [start, ...boxes.map((box) => box.id)]) visit(id);
  return back;
}

/** The longest way from a box that nothing leads to. */
function ranksOf(
  boxes: readonly BoxSize[],
  edges: readonly EdgeShape[],
  back: ReadonlySet<number>,
): Map<string, number> {
  const ranks = new Map(boxes.map(({ id }) => [id, 0]));
  const down = edges.flatMap(({ from, to }, i) => (from === to ? [] : [back.has(i) ? [to, from] : [from, to]]));
  for (let isMoved = true; isMoved; ) {
    isMoved = false;
    for (const [upper = "", lower = ""] of down) {
      const least = (ranks.get(upper) ?? 0) + 1;
      if ((ranks.get(lower) ?? 0) >= least) continue;
      ranks.set(lower, least);
      isMoved = true;
    }
  }
  return ranks;
}

/** Gives an edge a slot in every band between its boxes, the first of them wide enough for its label. */
function threadLink(link: Link, items: ReadonlyMap<string, Item>): void {
  const { edge, isBack } = link;
  const upper = items.get(isBack ? edge.to : edge.from)!;
  const lower = items.get(isBack ? edge.from : edge.to)!;
  const slots: Item[] = [];
  for (let rank = upper.rank + 1; rank < lower.rank; rank++)
    slots.push({ rank, width: SLOT_WIDTH, height: 0, isBox: false, x: 0, above: [], below: [] });
  const labelled = edge.labelWidth === 0 ? undefined : isBack ? slots.at(-1) : slots[0];
  if (labelled !== undefined) {
    Object.assign(labelled, { width: edge.labelWidth, height: LABEL_BAND });
    link.labelItem = labelled;
  }
  link.items = [upper, ...slots, lower];
  link.items.slice(1).forEach((item, i) => {
    const before = link.items[i]!;
    before.below.push(item);
    item.above.push(before);
  });
}

interface Band {
  readonly top: number;
  readonly height: number;
}

function topsOf(bands: readonly (readonly Item[])[]): Band[] {
  let top = MARGIN;
  return bands.map((band) => {
    const height = Math.max(0, ...band.map((item) => item.height));
    const placed = { top, height };
    top += height + BAND_GAP;
    return placed;
  });
}

function middleOf({ rank }: Item, tops: readonly Band[]): number {
  const { top, height } = tops[rank]!;
  return top + height / 2;
}

function placeEdges(
  edges: readonly EdgeShape[],
  links: readonly Link[],
  items: ReadonlyMap<string, Item>,
  tops: readonly Band[],
): PlacedEdge[] {
  const byIndex = new Map(links.map((link) => [link.index, link]));
  return edges.map(({ from }, index) => {
    const link = byIndex.get(index);
    if (link === undefined) return loopAt(items.get(from)!, tops);
    const points = pointsOf(link, links, tops);
    const { labelItem } = link;
    const label = labelItem === null ? null : { x: labelItem.x, y: middleOf(labelItem, tops) };
    return { points: link.isBack ? points.reverse() : points, label, isLoop: false };
  });
}

/** Down through every band, from the lower side of one box to the upper side of the other. */
function pointsOf(link: Link, links: readonly Link[], tops: readonly Band[]): Point[] {
  const upper = link.items[0]!;
  const lower = link.items.at(-1)!;
  const points: Point[] = [];
  for (const item of link.items) {
    const { top, height } = tops[item.rank]!;
    const middle = top + height / 2;
    if (item === upper) {
      const x = portOf(link, links, upper, "below");
      points.push({ x, y: middle + upper.height / 2 }, { x, y: top + height });
    } else if (item === lower) {
      const x = portOf(link, links, lower, "above");
      points.push({ x, y: top }, { x, y: middle - lower.height / 2 });
    } else points.push({ x: item.x, y: top }, { x: item.x, y: top + height });
  }
  return points;
}

/** Edges leave and enter a box side by side, in the order in which they stand; straight, where that is near. */
function portOf(link: Link, links: readonly Link[], box: Item, side: "above" | "below"): number {
  const isOwn = ({ items }: Link) => (side === "below" ? items[0] : items.at(-1)) === box;
  const neighbour = ({ items }: Link) => (side === "below" ? items[1] : items.at(-2))!.x;
  const own = links.filter(isOwn).sort((a, b) => neighbour(a) - neighbour(b));
  const reach = box.width / 2 - PORT_INSET;
  const apart = Math.min(PORT_GAP, (2 * reach) / Math.max(1, own.length - 1));
  const even = box.x + (own.indexOf(link) - (own.length - 1) / 2) * apart;
  const slack = own.length === 1 ? reach : Math.min(apart / 2 - 5, reach - Math.abs(even - box.x));
  return Math.abs(neighbour(link) - even) <= slack ? neighbour(link) : even;
}

function loopAt(box: Item, tops: readonly Band[]): PlacedEdge {
  const y = middleOf(box, tops);
  const x = box.x + box.width / 2;
  const points = [
    { x, y: y - 9 },
    { x: x + LOOP_WIDTH - 8, y },
    { x, y: y + 9 },
  ];
  return { points, label: null, isLoop: true };
}
