// Outlines
// What is known of a workflow's way before any run of it: what may follow what. Faces that know it put it into their definition.

export interface Outline {
  readonly kind: "machine" | "phases";
  /** The node that a run begins at. */
  readonly start: string;
  readonly nodes: readonly OutlineNode[];
  readonly edges: readonly OutlineEdge[];
}

export interface OutlineNode {
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

export interface OutlineEdge {
  readonly from: string;
  readonly to: string;
  readonly label?: string;
}

/** Run state in which a machine keeps where it is. */
export const MACHINE_KEY = "pawl.machine";

/** Where a run of a machine is: always explicit, whatever the run is doing. */
export interface MachinePosition {
  /** The current step. */
  readonly step: string;
  /** Steps that have been completed, each once, in the order of their first completion. */
  readonly completed: readonly string[];
  /** What the current step has decided and what is still waited for. */
  readonly pending?: unknown;
  /** How many proposals of agents were refused so far. */
  readonly rejected?: number;
}
