import type { Pawl } from "../client/pawl.ts";
import { ownHandles } from "../client/worker-health.ts";
import { LIMITS } from "../core/limits.ts";
import { isOwnWorkflow } from "../core/own-workflows.ts";
import { isTerminal, RUN_STATES } from "../core/transition.ts";
import type { Workflow } from "../core/workflow.ts";

interface VersionLine {
  readonly version: string;
  readonly workers: string[];
  unfinished: number;
}

/** A workflow that a worker has, that has unfinished runs, or whose code the server knows. */
export interface WorkflowLine {
  readonly name: string;
  readonly owner: string | null;
  readonly versions: readonly VersionLine[];
}

const UNFINISHED = RUN_STATES.filter((state) => !isTerminal(state));

export async function workflowsOf(
  pawl: Pawl,
  known: readonly Workflow[],
): Promise<{ workflows: readonly WorkflowLine[]; isComplete: boolean }> {
  const names = new Map<string, Map<string, VersionLine>>();
  const line = (name: string, version: string): VersionLine => {
    const versions = names.get(name) ?? new Map<string, VersionLine>();
    names.set(name, versions);
    const found = versions.get(version) ?? { version, workers: [], unfinished: 0 };
    versions.set(version, found);
    return found;
  };
  for (const { name, version } of known) line(name, version);
  for (const { id, handles } of await pawl.store.workers())
    for (const { workflow, version } of ownHandles(handles)) line(workflow, version).workers.push(id);
  const rows = await pawl.store.runs({ states: UNFINISHED, limit: LIMITS.listPageMax });
  for (const { workflow, version } of rows) if (!isOwnWorkflow(workflow)) line(workflow, version).unfinished++;
  const owners = new Map(known.map(({ name, definition }) => [name, definition.owner]));
  const workflows = [...names].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    workflows: workflows.map(([name, versions]) => ({
      name,
      owner: owners.get(name) ?? null,
      versions: [...versions.values()],
    })),
    isComplete: rows.length < LIMITS.listPageMax,
  };
}
