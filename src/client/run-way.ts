// The way of a run
// Which nodes of an graph a run has come by, folded from its journal: what it has done, where it is, and what it has skipped.

import type { Graph, GraphEdge } from "../core/graph.ts";
import type { Entry, StatePatched, StepFailed } from "../core/journal.ts";
import { isStepSuccess } from "../core/journal.ts";
import { MACHINE_KEY, type MachinePosition } from "../core/machine-position.ts";
import { UNDO_SUFFIX } from "../core/undoable-call.ts";
import type { TimelineChild, TimelineStep, TimelineWait } from "./timeline.ts";
import { type Timeline, timeline } from "./timeline.ts";

export type NodeStatus = "done" | "current" | "failed" | "skipped" | "undone";

export interface RunWay {
  readonly nodes: ReadonlyMap<string, NodeStatus>;
  /** By `edgeId`. */
  readonly edges: ReadonlySet<string>;
}

/** Names have no line breaks. */
export function edgeId({ from, to }: Pick<GraphEdge, "from" | "to">): string {
  return `${from}\n${to}`;
}

/** The way as programs are told of it. */
export function wayFacts({ nodes, edges }: RunWay): { nodes: Record<string, NodeStatus>; edges: string[][] } {
  return { nodes: Object.fromEntries(nodes), edges: [...edges].map((edge) => edge.split("\n")) };
}

const PHASE_KEY = "pawl.phase.";
/** What a key has behind the name of its step: of another use of the name, of another try, or of another generation. */
const COUNTERS = /([:.]\d+)?(#\d+)?$/;

/** The way through an graph. */
export function wayOf(graph: Graph, entries: readonly Entry[]): RunWay {
  const walk = new Walk(graph);
  for (const entry of entries) walk.take(entry);
  return walk.result();
}

class Walk {
  readonly #graph: Graph;
  readonly #nodes = new Map<string, NodeStatus>();
  readonly #edges = new Set<string>();
  /** The node that was come by last. */
  #last: string | null = null;
  #isUndoing = false;

  constructor(graph: Graph) {
    this.#graph = graph;
  }

  result(): RunWay {
    return { nodes: this.#nodes, edges: this.#edges };
  }

  take({ type, key, payload }: Entry): void {
    if (type === "state.patched") return this.#stateChanged(key ?? "", (payload as StatePatched).value);
    if (type === "run.succeeded") return this.#ended("/complete");
    if (type === "run.cancelled") return this.#ended("/cancel");
    if (type === "run.compensating") this.#isUndoing = true;
    if (type === "run.failed") return this.#failed();
    if (key !== null) this.#called(type, key, payload);
  }

  #stateChanged(key: string, value: unknown): void {
    if (key === MACHINE_KEY) this.#moveTo((value as MachinePosition).step);
    if (!key.startsWith(PHASE_KEY)) return;
    const { status, skipped } = (value ?? {}) as { readonly status?: string; readonly skipped?: unknown };
    const node = key.slice(PHASE_KEY.length);
    // What is skipped is gone past.
    if (skipped !== undefined) this.#began(node, "skipped");
    else if (status === "failed") this.#mark(node, "failed");
  }

  /** A machine says where it is: whatever it was at before is done. */
  #moveTo(step: string): void {
    if (step === this.#last) return;
    if (this.#last !== null) {
      this.#mark(this.#last, "done");
      this.#pass(this.#last, step);
    }
    this.#mark(step, "current");
    this.#last = step;
  }

  /** A call of a step that has a node of its own, as branches and phases do. */
  #called(type: Entry["type"], key: string, payload: unknown): void {
    const isUndo = key.endsWith(UNDO_SUFFIX);
    const name = (isUndo ? key.slice(0, -UNDO_SUFFIX.length) : key).replace(COUNTERS, "");
    if (!this.#graph.nodes.some(({ id }) => id === name)) return;
    if (isUndo) {
      if (type === "effect.compensated") this.#mark(name, "undone");
    } else if (isCall(type)) this.#began(name);
    else if (isStepSuccess(type) || type === "approval.decided") {
      if (name !== this.#last || this.#graph.kind === "phases") this.#mark(name, "done");
    } else if (type === "step.failed" && (payload as StepFailed).retryAt === null) this.#mark(name, "failed");
  }

  #began(name: string, status: NodeStatus = "current"): void {
    if (this.#nodes.get(name) === status) return;
    this.#mark(name, status);
    if (this.#last !== null) this.#pass(this.#last, name);
    // In a machine it is a branch of the step that the run is at, and stays there.
    if (this.#graph.kind === "phases") this.#last = name;
  }

  #mark(node: string, status: NodeStatus): void {
    this.#nodes.set(node, status);
  }

  /** The edge between two nodes; where there is none, those by way of what lies between. */
  #pass(from: string, to: string): void {
    const ways = this.#edgesFrom(from);
    if (ways.includes(to)) this.#edges.add(edgeId({ from, to }));
    else
      for (const node of ways)
        if (this.#nodes.has(node) && this.#edgesFrom(node).includes(to)) this.#edges.add(edgeId({ from: node, to }));
  }

  #ended(end: string): void {
    if (this.#last === null) return;
    this.#mark(this.#last, "done");
    if (!this.#graph.nodes.some(({ id }) => id === end)) return;
    this.#mark(end, "done");
    this.#pass(this.#last, end);
  }

  #failed(): void {
    if (this.#isUndoing && this.#edgesFrom(this.#last).includes("/compensate")) return this.#ended("/compensate");
    if (this.#last !== null && this.#nodes.get(this.#last) === "current") this.#mark(this.#last, "failed");
  }

  #edgesFrom(node: string | null): string[] {
    return this.#graph.edges.filter(({ from }) => from === node).map(({ to }) => to);
  }
}

function isCall(type: Entry["type"]): boolean {
  return type === "step.started" || type === "effect.planned" || type === "approval.requested";
}

/** More than anybody looks at in a picture. */
const MOST_CALLS = 100;

/** What a run has done, one call after the other: for workflows whose way is known from their runs alone. */
export function wayTaken(entries: readonly Entry[]): { readonly graph: Graph; readonly way: RunWay } {
  const line = timeline(entries);
  const calls = [...line.steps, ...line.waits, ...line.children].sort((a, b) => a.seq - b.seq);
  const shown = calls.slice(0, MOST_CALLS);
  const nodes: Graph["nodes"][number][] = shown.map((call) => ({
    id: String(call.seq),
    label: call.key,
    kind: kindOf(call),
  }));
  const status = new Map<string, NodeStatus>(shown.map((call) => [String(call.seq), statusOf(call)]));
  if (calls.length > shown.length)
    nodes.push({ id: "/more", label: `${calls.length - shown.length} more`, kind: "end" });
  const end = endOf(line);
  if (end !== null) {
    nodes.push(end.node);
    status.set(end.node.id, end.status);
  }
  const edges = nodes.slice(1).map((node, i) => ({ from: nodes[i]!.id, to: node.id }));
  return {
    graph: { kind: "machine", start: nodes[0]?.id ?? "", nodes, edges },
    way: { nodes: status, edges: new Set(edges.map(edgeId)) },
  };
}

function kindOf(call: TimelineStep | TimelineWait | TimelineChild): Graph["nodes"][number]["kind"] {
  if ("child" in call) return "child";
  if (!("kind" in call)) return "step";
  return call.kind === "approval" ? "approval" : "wait";
}

function statusOf({ status, endedAt }: TimelineStep | TimelineWait | TimelineChild): NodeStatus {
  if (status === "failed" || status === "cancelled") return "failed";
  return endedAt === null && status !== "detached" ? "current" : "done";
}

function endOf({ status }: Timeline): { readonly node: Graph["nodes"][number]; readonly status: NodeStatus } | null {
  if (status === "unfinished") return null;
  const label = status === "succeeded" ? "completed" : status;
  return { node: { id: "/end", label, kind: "end" }, status: status === "succeeded" ? "done" : "failed" };
}
