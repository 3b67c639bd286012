// A workflow that was played
// What can be known of a workflow only by running it: the linter's answers, the hazards that its body came to, and whether the run can be followed
// again from its journal by code that remembers nothing. The second of two plays is another run in the same world, so that a detector which
// does not look for its own run's work is found out.
import { messageOf } from "../../base/errors.ts";
import { type ExportedRun, exportRun } from "../../client/export.ts";
import type { StateDocument } from "../../core/state-document.ts";
import type { Workflow } from "../../core/workflow.ts";
import type { LintReport } from "../../testing/lint/report.ts";
import { lintScenes } from "../../testing/lint-effects.ts";
import { type ReplayResult, replay } from "../../testing/replay.ts";
import { sceneOf, type TestedWorkflow } from "../effect-tests.ts";
import { type Hazard, hazardLog } from "./hazards.ts";

export interface PlayedWorkflow {
  readonly workflow: string;
  readonly lint: LintReport;
  readonly hazards: readonly Hazard[];
  /** One for each test. */
  readonly runs: readonly PlayedRun[];
}

export interface PlayedRun {
  readonly test: string;
  readonly document: StateDocument;
  readonly exported: ExportedRun;
  /** Whether code with variables of its own follows the journal. */
  readonly replay: ReplayResult;
}

/** Plays the tests of a workflow; `again` finds its code once more, with variables of its own. */
export async function playWorkflow(
  { workflow, tests }: TestedWorkflow,
  again: (workflow: Workflow) => Workflow,
): Promise<PlayedWorkflow> {
  const hazards: Hazard[] = [];
  const recorded: Omit<PlayedRun, "replay">[] = [];
  const log = hazardLog(hazards);
  const scenes = tests.flatMap((test) => {
    const scene = { ...sceneOf(workflow, test), log };
    const first = {
      ...scene,
      over: async (engine: Parameters<typeof exportRun>[0], { id }: { readonly id: string }) => {
        const [document, exported] = [await engine.get(id).document(), await exportRun(engine, id)];
        recorded.push({ test: test.name, document, exported });
      },
    };
    return [first, { ...scene, name: `${test.name}, another run`, isAgain: true }];
  });
  const lint = await lintScenes(workflow, scenes);
  const code = again(workflow as Workflow);
  const runs: PlayedRun[] = [];
  for (const one of recorded) runs.push({ ...one, replay: await followed(code, one.exported) });
  return { workflow: workflow.name, lint, hazards: unique(hazards), runs };
}

async function followed(code: Workflow, exported: ExportedRun): Promise<ReplayResult> {
  try {
    return await replay(code, exported);
  } catch (error) {
    return { ok: false, message: messageOf(error) };
  }
}

function unique(hazards: readonly Hazard[]): Hazard[] {
  const names = hazards.map(({ what, line }) => `${what} ${line}`);
  return hazards.filter((_, at) => names.indexOf(names[at]!) === at);
}
