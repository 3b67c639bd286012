import { describe, expect, it } from "vitest";
import { type BoxSize, type EdgeShape, type Layout, layOut } from "./graph-layout.ts";

/** A graph of any shape, the same for the same seed: cycles, loops and edges over many layers among it. */
function graphOf(seed: number): { boxes: BoxSize[]; edges: EdgeShape[] } {
  let state = seed * 2654435761;
  const draw = (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const boxes = Array.from({ length: 2 + draw(12) }, (_, i) => ({
    id: `b${i}`,
    width: 60 + draw(140),
    height: 26 + draw(40),
  }));
  const idOf = (i: number) => boxes[i]!.id;
  // Every box can be reached; some edges lead back.
  const tree = boxes.slice(1).map((_, i) => ({ from: idOf(draw(i + 1)), to: idOf(i + 1), labelWidth: draw(3) * 40 }));
  const more = Array.from({ length: draw(boxes.length + 3) }, () => ({
    from: idOf(draw(boxes.length)),
    to: idOf(draw(boxes.length)),
    labelWidth: draw(2) * 60,
  }));
  const seen = new Set<string>();
  const edges = [...tree, ...more].filter(({ from, to }) => !seen.has(`${from} ${to}`) && seen.add(`${from} ${to}`));
  return { boxes, edges };
}

/** What a box covers. */
function areasOf(boxes: readonly BoxSize[], layout: Layout) {
  return boxes.map(({ id, width, height }) => {
    const { x, y } = layout.boxes.get(id)!;
    return { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
  });
}

describe("the layout of a graph", () => {
  it("puts no box on another and leads no edge through one, whatever the graph", () => {
    for (let seed = 1; seed <= 200; seed++) {
      const { boxes, edges } = graphOf(seed);
      const layout = layOut("b0", boxes, edges);
      const areas = areasOf(boxes, layout);
      for (const [i, a] of areas.entries())
        for (const b of areas.slice(i + 1))
          if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
            expect.fail(`boxes overlap with seed ${seed}`);
      for (const { points, isLoop } of layout.edges) {
        if (isLoop) continue;
        for (const [i, to] of points.slice(1).entries()) {
          const from = points[i]!;
          const [top, bottom] = [Math.min(from.y, to.y), Math.max(from.y, to.y)];
          const [left, right] = [Math.min(from.x, to.x), Math.max(from.x, to.x)];
          // A bend stays between the lines through its ends.
          for (const box of areas)
            if (top < box.bottom - 0.1 && bottom > box.top + 0.1 && left < box.right - 0.1 && right > box.left + 0.1)
              expect.fail(`an edge crosses a box with seed ${seed}`);
        }
      }
      for (const area of areas) {
        expect(area.left).toBeGreaterThanOrEqual(0);
        expect(area.right).toBeLessThanOrEqual(layout.width);
        expect(area.bottom).toBeLessThanOrEqual(layout.height);
      }
    }
  });

  it("leads edges down, and those that lead back up, from box to box", () => {
    const boxes = ["a", "b", "c"].map((id) => ({ id, width: 80, height: 40 }));
    const pairs = [
      ["a", "b"],
      ["b", "c"],
      ["c", "a"],
      ["b", "b"],
    ] as const;
    const edges = pairs.map(([from, to]) => ({ from, to, labelWidth: 0 }));
    const layout = layOut("a", boxes, edges);
    const [a, b, c] = ["a", "b", "c"].map((id) => layout.boxes.get(id)!);
    expect([a!.y < b!.y, b!.y < c!.y]).toEqual([true, true]);
    const [ab, , ca, bb] = layout.edges;
    expect([ab!.points[0]?.y, ab!.points.at(-1)?.y]).toEqual([a!.y + 20, b!.y - 20]);
    expect([ca!.points[0]?.y, ca!.points.at(-1)?.y]).toEqual([c!.y - 20, a!.y + 20]);
    expect(bb?.isLoop).toBe(true);
  });
});
