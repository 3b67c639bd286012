// The graph of a workflow
// What may follow what, known before any run: plain data that faces put into their definition, for those who draw it.

export interface Graph {
  readonly kind: "machine" | "phases";
  /** The node that a run begins at. */
  readonly start: string;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}

export interface GraphNode {
  /** The name of a step: the key that its calls have in the journal. Ends of a run have a "/" in front. */
  readonly id: string;
  readonly label: string;
  readonly kind:
    | "step"
    | "evaluator"
    | "agent"
    | "effect"
    | "approval"
    | "parallel"
    | "phase"
    | "wait"
    | "child"
    | "end";
  /** What it may do beside going on: "retry", "wait" … */
  readonly marks?: readonly string[];
  /** The phase that it belongs to. */
  readonly group?: string;
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  readonly label?: string;
}

/** Phases in their order, and the steps that some are made of. */
export interface PhaseList {
  readonly phases: readonly { readonly name: string; readonly steps?: readonly { readonly name: string }[] }[];
}

/** One after the other: a phase without steps is a node, one with steps is those. */
export function graphOfPhases({ phases }: PhaseList): Graph {
  const nodes = phases.flatMap(({ name, steps }): GraphNode[] =>
    steps === undefined
      ? [{ id: name, label: name, kind: "phase" }]
      : steps.map((step) => ({ id: `${name}.${step.name}`, label: step.name, kind: "step", group: name })),
  );
  const end: GraphNode = { id: "/complete", label: "completed", kind: "end" };
  const all = [...nodes, end];
  const edges = nodes.map(({ id }, i) => ({ from: id, to: all[i + 1]!.id }));
  return { kind: "phases", start: all[0]!.id, nodes: all, edges };
}
