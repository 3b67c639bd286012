import type { Pawl } from "../client/pawl.ts";
import type { RunTotals } from "../client/run-list.ts";
import { ownHandles } from "../client/worker-health.ts";
import type { Owners } from "../core/owners.ts";
import type { Workflow } from "../core/workflow.ts";
import { readFacts } from "../core/workflow-facts.ts";

interface VersionLine {
  readonly version: string;
  /** Workers that have it, by their ids. */
  readonly workers: string[];
}

/** A workflow that a worker has, or has said something about, or whose code the server knows. */
export interface WorkflowLine extends RunTotals {
  readonly name: string;
  /** Who has to see to its runs; `null`: nobody was named. */
  readonly owners: Owners | null;
  readonly versions: readonly VersionLine[];
}

/** Up to here runs of each workflow are counted: enough to see where there are many. */
const BOUND = 1000;

export async function workflowsOf(pawl: Pawl, known: readonly Workflow[]): Promise<WorkflowLine[]> {
  const [workers, catalogue] = await Promise.all([pawl.store.workers(), pawl.store.workflows()]);
  const names = new Map<string, Map<string, VersionLine>>();
  const line = (name: string, version: string): VersionLine => {
    const versions = names.get(name) ?? new Map<string, VersionLine>();
    names.set(name, versions);
    const found = versions.get(version) ?? { version, workers: [] };
    versions.set(version, found);
    return found;
  };
  for (const { name, version } of [...known, ...catalogue]) line(name, version);
  for (const { id, handles } of workers)
    for (const { workflow, version } of ownHandles(handles)) line(workflow, version).workers.push(id);
  const facts = readFacts(catalogue);
  const sorted = [...names].sort(([a], [b]) => (a < b ? -1 : 1));
  return Promise.all(
    sorted.map(async ([name, versions]) => ({
      name,
      owners: facts.get(name)?.owners ?? null,
      versions: [...versions.values()],
      ...(await pawl.operations.count({ workflow: name }, { bound: BOUND })),
    })),
  );
}
