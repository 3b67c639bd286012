// The way of a run
// Which nodes of an outline a run has come by, folded from its journal: what it has done, where it is, and what it has skipped.
import type { Entry, StatePatched, StepFailed } from "../core/journal.ts";
import { isStepSuccess } from "../core/journal.ts";
import { MACHINE_KEY, type MachinePosition, type Outline, type OutlineEdge } from "../core/outline.ts";
import type { TimelineChild, TimelineStep, TimelineWait } from "./timeline.ts";
import { type Timeline, timeline } from "./timeline.ts";

export type NodeStatus = "done" | "current" | "failed" | "skipped" | "undone";

export interface RunWay {
  readonly nodes: ReadonlyMap<string, NodeStatus>;
  /** By `edgeId`. */
  readonly edges: ReadonlySet<string>;
}

/** Names have no line breaks. */
export function edgeId({ from, to }: Pick<OutlineEdge, "from" | "to">): string {
  return `${from}\n${to}`;
}

const PHASE_KEY = "pawl.phase.";

/** The way through an outline. */
export function wayOf(outline: Outline, entries: readonly Entry[]): RunWay {
  const walk = new Walk(outline);
  for (const entry of entries) walk.take(entry);
  return walk.result();
}

class Walk {
  readonly #outline: Outline;
  readonly #nodes = new Map<string, NodeStatus>();
  readonly #edges = new Set<string>();
  /** The node that was come by last. */
  #last: string | null = null;
  #isUndoing = false;

  constructor(outline: Outline) {
    this.#outline = outline;
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
    if (skipped !== undefined) this.#mark(node, "skipped");
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
    const isUndo = key.endsWith("/undo");
    const name = (isUndo ? key.slice(0, -"/undo".length) : key).replace(/#\d+$/, "");
    if (!this.#outline.nodes.some(({ id }) => id === name)) return;
    if (isUndo) {
      if (type === "effect.compensated") this.#mark(name, "undone");
    } else if (isCall(type)) this.#began(name);
    else if (isStepSuccess(type) || type === "approval.decided") {
      if (name !== this.#last || this.#outline.kind === "phases") this.#mark(name, "done");
    } else if (type === "step.failed" && (payload as StepFailed).retryAt === null) this.#mark(name, "failed");
  }

  #began(name: string): void {
    if (this.#nodes.get(name) === "current") return;
    this.#mark(name, "current");
    if (this.#last !== null) this.#pass(this.#last, name);
    // In a machine it is a branch of the step that the run is at, and stays there.
    if (this.#outline.kind === "phases") this.#last = name;
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
    if (!this.#outline.nodes.some(({ id }) => id === end)) return;
    this.#mark(end, "done");
    this.#pass(this.#last, end);
  }

  #failed(): void {
    if (this.#isUndoing && this.#edgesFrom(this.#last).includes("/compensate")) return this.#ended("/compensate");
    if (this.#last !== null && this.#nodes.get(this.#last) === "current") this.#mark(this.#last, "failed");
  }

  #edgesFrom(node: string | null): string[] {
    return this.#outline.edges.filter(({ from }) => from === node).map(({ to }) => to);
  }
}

function isCall(type: Entry["type"]): boolean {
  return type === "step.started" || type === "effect.planned" || type === "approval.requested";
}

/** More than anybody looks at in a picture. */
const MOST_CALLS = 100;

/** What a run has done, one call after the other: for workflows whose way is known from their runs alone. */
export function wayTaken(entries: readonly Entry[]): { readonly outline: Outline; readonly way: RunWay } {
  const line = timeline(entries);
  const calls = [...line.steps, ...line.waits, ...line.children].sort((a, b) => a.seq - b.seq);
  const shown = calls.slice(0, MOST_CALLS);
  const nodes: Outline["nodes"][number][] = shown.map((call) => ({
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
    outline: { kind: "machine", start: nodes[0]?.id ?? "", nodes, edges },
    way: { nodes: status, edges: new Set(edges.map(edgeId)) },
  };
}

function kindOf(call: TimelineStep | TimelineWait | TimelineChild): Outline["nodes"][number]["kind"] {
  if ("child" in call) return "child";
  if (!("kind" in call)) return "step";
  return call.kind === "approval" ? "approval" : "wait";
}

function statusOf({ status, endedAt }: TimelineStep | TimelineWait | TimelineChild): NodeStatus {
  if (status === "failed" || status === "cancelled") return "failed";
  return endedAt === null && status !== "detached" ? "current" : "done";
}

function endOf({ status }: Timeline): { readonly node: Outline["nodes"][number]; readonly status: NodeStatus } | null {
  if (status === "unfinished") return null;
  const label = status === "succeeded" ? "completed" : status;
  return { node: { id: "/end", label, kind: "end" }, status: status === "succeeded" ? "done" : "failed" };
}
