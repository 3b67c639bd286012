import { PawlError } from "../base/errors.ts";
import { compareVersions, isVersion, parseVersion, sameMinor } from "../base/semver.ts";
import { type MigrationPlan, planFrom } from "../core/migration.ts";
import type { Handle } from "../core/store.ts";
import type { Workflow } from "../core/workflow.ts";

/** The workflow versions that this process can run. Looked up by name in a Map, never as a property (Q9). */
export class Registry {
  readonly #workflows = new Map<string, Workflow[]>();

  readonly handles: readonly Handle[];

  constructor(workflows: readonly Workflow[]) {
    for (const workflow of workflows) this.#add(workflow);
    const all = [...this.#workflows.values()].flat();
    this.handles = all.map((workflow) => handleOf(workflow));
  }

  /** The newest version of a workflow. */
  newest(name: string): Workflow | undefined {
    return this.#workflows.get(name)?.at(-1);
  }

  /** What can run a run of this version: the same major.minor and no older patch (P34), unless its policy says something else. */
  forRun(name: string, version: string): Workflow | undefined {
    const newest = this.newest(name);
    if (newest?.version === version) return newest;
    const known = this.#workflows.get(name);
    return (
      known?.findLast((one) => isMadeFor(one, version)) ??
      known?.findLast((one) => one.definition.versionPolicy === "ignore")
    );
  }

  /** The way from this version to the newest one here that migrations lead to. */
  migrationFrom(name: string, version: string): MigrationPlan | null {
    for (const workflow of this.#workflows.get(name)?.toReversed() ?? []) {
      const plan = planFrom(workflow, version);
      if (plan !== null) return plan;
    }
    return null;
  }

  /** The names of all workflows. */
  get names(): readonly string[] {
    return [...this.#workflows.keys()];
  }

  #add(workflow: Workflow): void {
    if (typeof workflow?.definition?.handler !== "function") {
      throw new PawlError("invalid_argument", "`workflows` holds something that was not made by workflow(…).");
    }
    const known = this.#workflows.get(workflow.name) ?? [];
    if (known.some((one) => one.version === workflow.version)) {
      throw new PawlError(
        "duplicate_workflow",
        `Workflow "${workflow.name}" is registered twice in version ${workflow.version}. Give one of them another name or version.`,
        {
          fields: { workflow: workflow.name, version: workflow.version },
        },
      );
    }
    known.push(workflow);
    known.sort((a, b) => compareVersions(parseVersion(a.version), parseVersion(b.version)));
    this.#workflows.set(workflow.name, known);
  }
}

function isMadeFor({ version, definition }: Workflow, wanted: string): boolean {
  if (definition.versionPolicy === "exact") return version === wanted;
  const [ours, theirs] = [parseVersion(version), parseVersion(wanted)];
  return sameMinor(ours, theirs) && ours.patch >= theirs.patch;
}

/** Where ways begin that lead to this version. */
function startsOf(workflow: Workflow): string[] {
  const starts = new Set(workflow.definition.migrations.map(({ from }) => from));
  return [...starts].filter((from) => planFrom(workflow, isVersion(from) ? from : `${from}.0`) !== null);
}

export function handleOf(workflow: Workflow): Handle {
  const { name, version, definition } = workflow;
  const { flow, versionPolicy, migrations, triggers } = definition;
  return {
    workflow: name,
    version,
    ...(versionPolicy !== "semver" && { policy: versionPolicy }),
    ...(migrations.length > 0 && { migrates: startsOf(workflow) }),
    ...(flow?.concurrency != null && { concurrency: flow.concurrency.limit }),
    ...(flow?.rate != null && { rate: { limit: flow.rate.limit, perMs: flow.rate.perMs } }),
    ...(triggers.length > 0 && { on: triggers }),
  };
}
