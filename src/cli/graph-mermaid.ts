// Graphs as Mermaid flowcharts, for pages that draw them.
import { edgeId, type NodeStatus, type RunWay } from "../client/run-way.ts";
import type { Graph, GraphNode } from "../core/graph.ts";

const SHAPES: Readonly<Record<GraphNode["kind"], readonly [open: string, close: string]>> = {
  step: ["[", "]"],
  evaluator: ["[/", "/]"],
  agent: ["([", "])"],
  effect: ["[[", "]]"],
  approval: ["{{", "}}"],
  parallel: ["[\\", "\\]"],
  phase: ["[", "]"],
  wait: ["(", ")"],
  child: ["[[", "]]"],
  end: ["((", "))"],
};

const CLASSES: Readonly<Record<NodeStatus, string>> = {
  done: "fill:#d9f2e0,stroke:#2e7d4f,color:#12331f",
  current: "fill:#dbe9fb,stroke:#1f5fb4,stroke-width:3px,color:#0d2747",
  failed: "fill:#fbdcdc,stroke:#b42323,color:#470d0d",
  skipped: "fill:#f4f4f4,stroke:#8a8a8a,stroke-dasharray:4 3,color:#555555",
  undone: "fill:#fbeccf,stroke:#a86b00,color:#402a00",
};

/** A flowchart; with a way, what was come by is coloured and its edges are thick. */
export function mermaidOf(graph: Graph, way: RunWay | null): string {
  const ids = new Map(graph.nodes.map(({ id }, i) => [id, `n${i}`]));
  const nodes = graph.nodes.map((node) => nodeLine(node, ids.get(node.id) ?? ""));
  const edges = graph.edges.map(({ from, to, label }) => {
    const arrow = way?.edges.has(edgeId({ from, to })) === true ? "==>" : "-->";
    return `  ${ids.get(from)} ${arrow}${label === undefined ? "" : `|"${escaped(label)}"|`} ${ids.get(to)}`;
  });
  return ["flowchart TD", ...grouped(graph, nodes), ...edges, ...(way === null ? [] : painted(way, ids))].join("\n");
}

/** Steps of one phase stand together. */
function grouped({ nodes }: Graph, lines: readonly string[]): string[] {
  const groups = [...new Set(nodes.map(({ group }) => group))];
  return groups.flatMap((group, i) => {
    const own = lines.filter((_, at) => nodes[at]?.group === group);
    return group === undefined ? own : [`  subgraph g${i}["${escaped(group)}"]`, ...own, "  end"];
  });
}

function nodeLine({ label, kind, marks }: GraphNode, id: string): string {
  const [open, close] = SHAPES[kind];
  const able = marks === undefined ? "" : `<br/><small>${escaped(marks.join(", "))}</small>`;
  return `  ${id}${open}"${escaped(label)}${able}"${close}`;
}

function painted({ nodes }: RunWay, ids: ReadonlyMap<string, string>): string[] {
  const statuses = [...new Set(nodes.values())];
  const classes = statuses.map((status) => `  classDef ${status} ${CLASSES[status]}`);
  const uses = statuses.map((status) => {
    const own = [...nodes].filter(([, one]) => one === status).flatMap(([id]) => ids.get(id) ?? []);
    return own.length === 0 ? null : `  class ${own.join(",")} ${status}`;
  });
  return [...classes, ...uses.filter((line) => line !== null)];
}

const ENTITIES: Readonly<Record<string, string>> = {
  "#": "#35;",
  "&": "#amp;",
  '"': "#quot;",
  "<": "#lt;",
  ">": "#gt;",
};

/** Mermaid's own form of entities. */
function escaped(text: string): string {
  return text.replaceAll(/[#&"<>]/g, (mark) => ENTITIES[mark] ?? mark);
}
