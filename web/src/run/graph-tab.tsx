// Machines and phases as a drawing, with the way that the run has taken. The layout is that of `pawl graph`.
import type { JSX } from "preact";
import { layOut, type PlacedEdge, type Point } from "../../../src/client/graph-layout.ts";
import type { GraphNode } from "../../../src/core/graph.ts";
import { Empty, Loaded } from "../notice.tsx";
import { useReloading } from "../resource.ts";
import type { Tone } from "../status.tsx";
import type { WireGraph } from "../wire.ts";
import type { RunView } from "./view.ts";

export function GraphTab({ run, change }: RunView): JSX.Element {
  const graph = useReloading<WireGraph>(`/api/runs/${encodeURIComponent(run.id)}/graph`, change);
  return (
    <section aria-label="Graph">
      <Loaded of={graph}>
        {(data) =>
          data.graph.nodes.length === 0 ? (
            <Empty title="There is nothing to draw yet." />
          ) : (
            <div class="graph-frame">
              <Drawing {...data} />
            </div>
          )
        }
      </Loaded>
    </section>
  );
}

const TONES: Readonly<Record<string, Tone>> = {
  done: "succeeded",
  current: "running",
  failed: "failed",
  skipped: "cancelled",
  undone: "waiting",
};
const CHAR = 7.4;
const SMALL_CHAR = 6.2;
const LONGEST = 36;
/** ", skipped": room for what becomes of a node, so that nothing moves when it does. */
const LONGEST_STATUS = 9;

function shorten(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

function Drawing({ graph, way }: WireGraph): JSX.Element {
  const boxes = graph.nodes.map(({ id, label, kind }) => ({
    id,
    width: Math.max(shorten(label).length * CHAR, (kind.length + LONGEST_STATUS) * SMALL_CHAR) + 20,
    height: kind === "end" ? 28 : 42,
  }));
  const sizes = new Map(boxes.map((box) => [box.id, box]));
  const edges = graph.edges.map(({ from, to, label }) => ({
    from,
    to,
    labelWidth: label === undefined ? 0 : label.length * SMALL_CHAR + 10,
  }));
  const layout = layOut(graph.start, boxes, edges);
  const taken = new Set(way?.edges.map(([from, to]) => `${from}\n${to}`));
  const width = Math.ceil(layout.width);
  const height = Math.ceil(layout.height);
  return (
    <svg
      class="graph"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label="The way of the run"
    >
      <defs>
        <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
          <path class="arrow" d="M0 0.8L7.2 4 0 7.2z" />
        </marker>
      </defs>
      {graph.edges.map((edge, i) => {
        const placed = layout.edges[i];
        if (placed === undefined) return null;
        const isTaken = taken.has(`${edge.from}\n${edge.to}`);
        return (
          <g key={`${edge.from} ${edge.to} ${edge.label ?? ""}`} class={isTaken ? "edge is-taken" : "edge"}>
            <path d={pathOf(placed)} marker-end="url(#arrow)" />
            {edge.label !== undefined && placed.label !== null && (
              <text class="edge-label" x={placed.label.x} y={placed.label.y + 4}>
                {edge.label}
              </text>
            )}
          </g>
        );
      })}
      {graph.nodes.map((node) => (
        <Box
          key={node.id}
          node={node}
          at={layout.boxes.get(node.id)}
          size={sizes.get(node.id)}
          status={way?.nodes[node.id]}
        />
      ))}
    </svg>
  );
}

interface BoxProps {
  readonly node: GraphNode;
  readonly at: Point | undefined;
  readonly size: { readonly width: number; readonly height: number } | undefined;
  readonly status: string | undefined;
}

function Box({ node, at, size, status }: BoxProps): JSX.Element | null {
  if (at === undefined || size === undefined) return null;
  const { width, height } = size;
  const isEnd = node.kind === "end";
  const tone = status === undefined ? "quiet" : (TONES[status] ?? "quiet");
  return (
    <g
      class={`node tone-${tone}${status === undefined ? " is-off" : ""}`}
      transform={`translate(${at.x - width / 2} ${at.y - height / 2})`}
    >
      <title>{`${node.label}: ${status ?? "not reached"}`}</title>
      <rect width={width} height={height} rx={isEnd ? 14 : 6} />
      <text class="node-label" x={width / 2} y={isEnd ? 18.5 : 18}>
        {shorten(node.label)}
      </text>
      {!isEnd && (
        <text class="node-kind" x={width / 2} y={33}>
          {status === undefined ? node.kind : `${node.kind}, ${status}`}
        </text>
      )}
    </g>
  );
}

/** Straight within a band, a bend between two. */
function pathOf({ points: [first, ...rest], isLoop }: PlacedEdge): string {
  if (first === undefined) return "";
  if (isLoop) {
    const [side, last] = rest;
    return `M${first.x} ${first.y}C${side!.x + 14} ${first.y - 4} ${side!.x + 14} ${last!.y + 4} ${last!.x} ${last!.y}`;
  }
  let from = first;
  let path = `M${first.x} ${first.y}`;
  for (const to of rest) {
    // An end without a length has no direction, and its arrow would point anywhere.
    if (to.x === from.x && to.y === from.y) continue;
    const middle = (from.y + to.y) / 2;
    path += from.x === to.x ? `L${to.x} ${to.y}` : `C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.y}`;
    from = to;
  }
  return path;
}
