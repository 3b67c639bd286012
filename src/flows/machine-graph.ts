// The graph of a machine
// Its steps and what may follow what, as data: for those who draw it, and for the hash that tells when it has changed.
import type { Graph, GraphEdge, GraphNode } from "../core/graph.ts";
import type { MachinePlan, PlannedStep } from "./machine-plan.ts";

/** Ends are no steps: names of steps have no "/". */
const ENDS = { complete: "/complete", cancel: "/cancel", compensate: "/compensate" } as const;
const END_LABELS: Readonly<Record<string, string>> = {
  "/complete": "completed",
  "/cancel": "cancelled",
  "/compensate": "undone and failed",
};

export function graphOf({ start, steps }: MachinePlan): Graph {
  const edges = [...steps.values()].flatMap((step) => edgesOf(step, steps));
  const ends = [...new Set(edges.map(({ to }) => to).filter((to) => to in END_LABELS))];
  return {
    kind: "machine",
    start,
    nodes: [
      ...[...steps.values()].map(nodeOf),
      ...ends.map((id): GraphNode => ({ id, label: END_LABELS[id] ?? id, kind: "end" })),
    ],
    edges,
  };
}

function nodeOf({ name, step, can }: PlannedStep): GraphNode {
  const marks = ["retry", "wait", "escalate"].filter((word) => can.has(word));
  return { id: name, label: name, kind: step.kind, ...(marks.length > 0 && { marks }) };
}

function edgesOf({ name, routes, can }: PlannedStep, steps: MachinePlan["steps"]): GraphEdge[] {
  const ends = Object.entries(ENDS).filter(([word]) => can.has(word));
  // A step that two ways lead to is drawn once, with both reasons.
  const labels = new Map<string, string[]>();
  for (const { to, label } of routes)
    labels.set(to, [...(labels.get(to) ?? []), ...(label === undefined ? [] : [label])]);
  const onward = [...labels].map(
    ([to, why]): GraphEdge => ({ from: name, to, ...(why.length > 0 && { label: why.join(", ") }) }),
  );
  return [...onward, ...ends.map(([, to]) => ({ from: name, to }))].filter(
    ({ to }) => to.startsWith("/") || steps.has(to),
  );
}

/** What of a machine its runs depend on, as plain data. */
export interface MachineShape {
  readonly start: string;
  readonly steps: Readonly<Record<string, MachineStepShape>>;
  readonly rules: Readonly<Record<string, unknown>>;
  readonly escalation: unknown;
}

export interface MachineStepShape {
  readonly kind: string;
  /** Why, and where to. */
  readonly ways: readonly (readonly [label: string, to: string])[];
  readonly can: readonly string[];
  /** What its kind says beside that: the class of an effect, the options of a gate. */
  readonly facts: unknown;
}

/** All that decides which way a run may take and who has to agree, in any order of the steps. Code is not in it: replay tells of that. */
export function shapeOfMachine({ start, steps, rules, escalation }: MachinePlan): MachineShape {
  return {
    start,
    steps: Object.fromEntries([...steps.values()].map((step) => [step.name, shapeOf(step)])),
    rules: Object.fromEntries(
      Object.entries(rules).map(([field, rule]) => [field, typeof rule === "function" ? "function" : rule]),
    ),
    escalation: escalation?.approvers ?? null,
  };
}

function shapeOf({ step, routes, can }: PlannedStep): MachineStepShape {
  const ways = routes
    .map(({ to, label = "" }) => [label, to] as const)
    .sort((a, b) => (String(a) < String(b) ? -1 : 1));
  return { kind: step.kind, ways, can: [...can].sort(), facts: factsOf(step) };
}

function factsOf({ kind, spec }: PlannedStep["step"]): unknown {
  switch (kind) {
    case "effect": {
      const { class: effectClass = "write", idempotent = false, keyScope = "step", needs = null } = spec;
      return [effectClass, idempotent, keyScope, needs, spec.detect !== undefined, spec.undo !== undefined];
    }
    case "approval": {
      const { approvers, quorum = 1, fourEyes = false, onDenied = null, onExpired = null, onChanges = null } = spec;
      return [
        typeof approvers === "function" ? "function" : approvers,
        quorum,
        fourEyes,
        onDenied,
        onExpired,
        onChanges,
      ];
    }
    case "parallel":
      return spec.next;
    default:
      return null;
  }
}
