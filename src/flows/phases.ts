import { join } from "node:path";
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import type { Context } from "../core/context.ts";
import { graphOfPhases } from "../core/graph.ts";
import { withStructure } from "../core/structure.ts";
import { type Workflow, workflow } from "../core/workflow.ts";
import { folderName } from "../files/folder-name.ts";
import { DEFAULT_FOLDER } from "./output-files.ts";
import { type PhasePlan, planOf } from "./phase-plan.ts";
import { PhaseRun } from "./phase-run.ts";
import type { Phase, PhasesOptions } from "./phase-spec.ts";
import { runIdOf } from "./run-id.ts";

/** A workflow that is made of phases: what it is made of can be looked at, compared and drawn. */
export interface PhasesWorkflow<I = unknown, R = unknown> extends Workflow<I, R> {
  readonly plan: PhasePlan;
  /** Where the output files of a run are. */
  outputsOf(run: Pick<Context["run"], "id"> & { readonly outputs?: string }): string;
}

/**
 * Defines a workflow of named phases: they run in this order, each is done once, and a state document tells where a run stands.
 *
 * ```ts
 * const bugfix = phases({ name: "bugfix", version: "1.3.0", correlation: "jira_key" }, [
 *   { name: "intake", output: "bug.json", run: ({ input, signal }) => tracker.read(input.issue, { signal }) },
 *   { name: "fix", steps: [
 *     { name: "candidate", kind: "model", run: ({ outputs }) => model.propose(outputs.intake) },
 *     { name: "commit", effect: ({ outputs }) => gitCommit({ cwd: "app", message: outputs.intake.title }) },
 *   ] },
 * ]);
 * ```
 */
export function phases<I = unknown, O = Record<string, unknown>, R = unknown>(
  options: PhasesOptions<I, O, R>,
  list: readonly Phase<I, O>[],
): PhasesWorkflow<I, R> {
  const { correlation = null } = options;
  if (correlation !== null) assertCorrelation(options.name, correlation);
  const plan = planOf(options.name, list as unknown as readonly Phase<never, never>[], correlation);
  const outputsOf: PhasesWorkflow["outputsOf"] = (run) =>
    options.outputs === undefined ? defaultFolder(run) : join(options.outputs, folderName(run.id));
  const plain = workflow<I, R>(options, (ctx, input) => {
    const run = new PhaseRun(ctx, input, plan, options as unknown as PhasesOptions<never, never>, outputsOf);
    return run.go() as Promise<R>;
  });
  const made = withStructure(plain, plan.shape);
  const definition = { ...made.definition, runId: runIdOf(options), graph: graphOfPhases(plan.outline) };
  return { ...made, definition, plan, outputsOf };
}

/** Fields of a state document beside those that `readStateDocument` knows: what a `file:` store keeps in it. */
const TAKEN = ["engine", "checksum"];

function assertCorrelation(workflow: string, correlation: string): void {
  assertName("correlation", correlation);
  if (!TAKEN.includes(correlation)) return;
  throw new PawlError(
    "invalid_argument",
    `\`correlation\` of workflow "${workflow}" is "${correlation}", a field that state documents have already. Choose another name.`,
    { fields: { field: "correlation" } },
  );
}

/** Where the output files of a run are when its workflow does not say. */
export function defaultFolder({ id, outputs }: { readonly id: string; readonly outputs?: string }): string {
  return outputs ?? join(DEFAULT_FOLDER, folderName(id));
}
