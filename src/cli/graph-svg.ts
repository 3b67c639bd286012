// Graphs as SVG: a picture that needs nothing but a browser.

import { type EdgeShape, type Layout, layOut, type PlacedEdge, type Point } from "../client/graph-layout.ts";
import { edgeId, type NodeStatus, type RunWay } from "../client/run-way.ts";
import type { Graph, GraphEdge, GraphNode } from "../core/graph.ts";

interface Paint {
  readonly fill: string;
  readonly stroke: string;
  readonly text: string;
}

const PLAIN: Paint = { fill: "#ffffff", stroke: "#6b7280", text: "#1f2937" };
const PAINTS: Readonly<Record<NodeStatus, Paint>> = {
  done: { fill: "#e3f5e9", stroke: "#2e7d4f", text: "#12331f" },
  current: { fill: "#dbe9fb", stroke: "#1f5fb4", text: "#0d2747" },
  failed: { fill: "#fbdcdc", stroke: "#b42323", text: "#470d0d" },
  skipped: { fill: "#f4f4f5", stroke: "#a1a1aa", text: "#71717a" },
  undone: { fill: "#fdf0d5", stroke: "#a86b00", text: "#402a00" },
};
const NOT_TAKEN: Paint = { fill: "#ffffff", stroke: "#c4c9d1", text: "#6b7280" };
const TAKEN = "#2e7d4f";
const EDGE = "#6b7280";
const EDGE_NOT_TAKEN = "#c4c9d1";

const LABEL_SIZE = 14;
const SMALL_SIZE = 11;
const LONGEST_LABEL = 36;
const HEADER = 34;
const LEGEND = 30;

/** What is written above the drawing. */
export interface Caption {
  readonly title: string;
  readonly note: string;
}

export function svgOf(graph: Graph, way: RunWay | null, { title, note }: Caption): string {
  const boxes = graph.nodes.map((node) => ({ id: node.id, ...sizeOf(node) }));
  const shapes = graph.edges.map(
    ({ from, to, label }): EdgeShape => ({
      from,
      to,
      labelWidth: label === undefined ? 0 : widthOf(label, SMALL_SIZE) + 10,
    }),
  );
  const layout = layOut(graph.start, boxes, shapes);
  const width = Math.ceil(
    Math.max(layout.width, widthOf(title, 16) + 48, widthOf(note, SMALL_SIZE) + 48, way === null ? 0 : 260),
  );
  const legend = way === null ? 0 : LEGEND;
  const height = Math.ceil(layout.height + HEADER + legend);
  const left = Math.round((width - layout.width) / 2);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(`${title} ${note}`)}" font-family="system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif">`,
    `<defs>${[EDGE, EDGE_NOT_TAKEN, TAKEN].map(arrowHead).join("")}</defs>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="24" y="26" font-size="16" font-weight="600" fill="#111827">${escaped(title)}</text>`,
    `<text x="24" y="43" font-size="${SMALL_SIZE}" fill="#6b7280">${escaped(note)}</text>`,
    `<g transform="translate(${left} ${HEADER})">`,
    ...edgesOf(graph, way, layout),
    ...graph.nodes.map((node) => boxOf(node, layout.boxes.get(node.id)!, paintOf(node, way))),
    "</g>",
    ...(way === null ? [] : legendOf(way, height - 14)),
    "</svg>",
    "",
  ].join("\n");
}

function sizeOf({ label, kind, marks, group }: GraphNode): { readonly width: number; readonly height: number } {
  if (kind === "end") return { width: widthOf(shortened(label), SMALL_SIZE + 1) + 28, height: 26 };
  const small = Math.max(widthOf(captionOf(kind, group), SMALL_SIZE), widthOf(marks?.join(" · ") ?? "", SMALL_SIZE));
  return {
    width: Math.max(96, widthOf(shortened(label), LABEL_SIZE) + 32, small + 32),
    height: marks === undefined ? 46 : 60,
  };
}

function captionOf(kind: GraphNode["kind"], group: string | undefined): string {
  return group === undefined ? kind : `${group} · ${kind}`;
}

function paintOf({ id }: GraphNode, way: RunWay | null): Paint & { readonly status: NodeStatus | null } {
  const status = way?.nodes.get(id) ?? null;
  if (status !== null) return { ...PAINTS[status], status };
  return { ...(way === null ? PLAIN : NOT_TAKEN), status };
}

function boxOf(node: GraphNode, { x, y }: Point, paint: Paint & { readonly status: NodeStatus | null }): string {
  const { width, height } = sizeOf(node);
  const { label, kind, marks, group } = node;
  const top = y - height / 2;
  const line = paint.status === "current" ? 3 : 1.5;
  const dash = paint.status === "skipped" ? ' stroke-dasharray="4 3"' : "";
  const frame = `fill="${paint.fill}" stroke="${paint.stroke}" stroke-width="${line}"${dash}`;
  const text = (at: number, size: number, what: string, more = "") =>
    `<text x="${px(x)}" y="${px(at)}" font-size="${size}" text-anchor="middle" fill="${paint.text}"${more}>${escaped(what)}</text>`;
  const parts =
    kind === "end"
      ? [text(y + 4, SMALL_SIZE + 1, shortened(label))]
      : [
          text(top + 17, SMALL_SIZE, captionOf(kind, group), ' opacity="0.7"'),
          text(top + 35, LABEL_SIZE, shortened(label), ' font-weight="600"'),
          ...(marks === undefined
            ? []
            : [text(top + 51, SMALL_SIZE, marks.join(" · "), ' font-style="italic" opacity="0.8"')]),
        ];
  const title = `<title>${escaped(`${label}: ${kind}${paint.status === null ? "" : `, ${paint.status}`}`)}</title>`;
  return `<g>${title}${shapeOf(kind, px(x - width / 2), px(top), px(width), height, frame)}${parts.join("")}</g>`;
}

/** Gates have corners cut off, actions outside a double side, ends and agents are round. */
function shapeOf(kind: GraphNode["kind"], x: number, y: number, width: number, height: number, frame: string): string {
  const right = x + width;
  const rect = (radius: number) =>
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${radius}" ${frame}/>`;
  switch (kind) {
    case "approval": {
      const middle = y + height / 2;
      return `<path d="M${x + 12} ${y}H${right - 12}L${right} ${middle}L${right - 12} ${y + height}H${x + 12}L${x} ${middle}Z" ${frame}/>`;
    }
    case "effect":
      return `${rect(3)}<path d="M${x + 6} ${y}V${y + height}M${right - 6} ${y}V${y + height}" ${frame} fill-opacity="0"/>`;
    case "agent":
    case "wait":
    case "end":
      return rect(height / 2);
    case "parallel":
      return `<path d="M${x + 10} ${y}H${right - 10}L${right} ${y + height}H${x}Z" ${frame}/>`;
    default:
      return rect(6);
  }
}

function edgesOf({ edges }: Graph, way: RunWay | null, layout: Layout): string[] {
  const drawn = edges.map((edge, i) => {
    const isTaken = way?.edges.has(edgeId(edge)) === true;
    return { isTaken, text: edgeOf(edge, layout.edges[i]!, isTaken, way !== null) };
  });
  // What was taken lies on top.
  return [...drawn.filter(({ isTaken }) => !isTaken), ...drawn.filter(({ isTaken }) => isTaken)].map(
    ({ text }) => text,
  );
}

function edgeOf(
  { label }: GraphEdge,
  { points, label: at, isLoop }: PlacedEdge,
  isTaken: boolean,
  hasWay: boolean,
): string {
  const stroke = isTaken ? TAKEN : hasWay ? EDGE_NOT_TAKEN : EDGE;
  const path = `<path d="${isLoop ? loopPath(points) : pathOf(points)}" fill="none" stroke="${stroke}" stroke-width="${isTaken ? 2.5 : 1.5}" marker-end="url(#${arrowId(stroke)})"/>`;
  if (label === undefined || at === null) return path;
  const width = widthOf(label, SMALL_SIZE) + 8;
  return [
    path,
    `<rect x="${px(at.x - width / 2)}" y="${px(at.y - 9)}" width="${px(width)}" height="18" rx="3" fill="#ffffff"/>`,
    `<text x="${px(at.x)}" y="${px(at.y + 4)}" font-size="${SMALL_SIZE}" text-anchor="middle" fill="${isTaken ? TAKEN : "#4b5563"}">${escaped(label)}</text>`,
  ].join("");
}

/** Straight within a band, bent between two. */
function pathOf(points: readonly Point[]): string {
  const [first, ...rest] = points;
  let before = first!;
  let path = `M${px(before.x)} ${px(before.y)}`;
  for (const point of rest) {
    if (Math.abs(point.x - before.x) < 0.5) path += `L${px(point.x)} ${px(point.y)}`;
    else {
      const middle = (before.y + point.y) / 2;
      path += `C${px(before.x)} ${px(middle)} ${px(point.x)} ${px(middle)} ${px(point.x)} ${px(point.y)}`;
    }
    before = point;
  }
  return path;
}

function loopPath([from, side, to]: readonly Point[]): string {
  return `M${px(from!.x)} ${px(from!.y)}C${px(side!.x)} ${px(from!.y)} ${px(side!.x)} ${px(to!.y)} ${px(to!.x)} ${px(to!.y)}`;
}

function arrowId(color: string): string {
  return `arrow-${color.slice(1)}`;
}

function arrowHead(color: string): string {
  return `<marker id="${arrowId(color)}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L10 5L0 10Z" fill="${color}"/></marker>`;
}

function legendOf({ nodes }: RunWay, y: number): string[] {
  const statuses = (Object.keys(PAINTS) as NodeStatus[]).filter((status) => [...nodes.values()].includes(status));
  let x = 24;
  return statuses.map((status) => {
    const { fill, stroke } = PAINTS[status];
    const item = `<rect x="${x}" y="${y - 10}" width="12" height="12" rx="2" fill="${fill}" stroke="${stroke}"/><text x="${x + 18}" y="${y}" font-size="${SMALL_SIZE}" fill="#4b5563">${status}</text>`;
    x += 34 + Math.ceil(widthOf(status, SMALL_SIZE));
    return item;
  });
}

function shortened(text: string): string {
  return text.length > LONGEST_LABEL ? `${text.slice(0, LONGEST_LABEL - 1)}…` : text;
}

const NARROW = new Set("iljtfr.,:;'|!()[] ");
const WIDE = new Set("mwMW@%—");

/** About: there is no font to ask here, and a little too wide does no harm. */
function widthOf(text: string, size: number): number {
  let ems = 0;
  for (const char of text)
    ems += WIDE.has(char)
      ? 0.92
      : NARROW.has(char)
        ? 0.38
        : /[A-Z]/.test(char)
          ? 0.72
          : char.charCodeAt(0) > 0x2e80
            ? 1.05
            : 0.61;
  return ems * size;
}

function px(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
