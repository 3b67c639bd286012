// One play of a workflow, in an engine of its own, for as long as anything can happen.
import { messageOf } from "../../base/errors.ts";
import type { Run } from "../../client/run.ts";
import type { Log } from "../../core/context.ts";
import { isTerminal } from "../../core/transition.ts";
import type { Workflow } from "../../core/workflow.ts";
import type { Script } from "../explorer/history.ts";
import { show } from "../explorer/run-end.ts";
import type { Workflows } from "../explorer/watched-workflow.ts";
import type { Recorder } from "../recorder.ts";
import { type TestEngine, testEngine } from "../test-engine.ts";
import { lintedWorkflows } from "./linted-workflow.ts";
import type { Operations } from "./operation.ts";
import { type BodyAct, Stage } from "./stage.ts";

/** What is played. */
export interface Scene {
  readonly name: string;
  readonly input: unknown;
  readonly script: Script | undefined;
  readonly recorder: Recorder | null;
  readonly workflows: Workflows;
  fresh(): void | Promise<void>;
  /** Another run in the world that the play before it has left: what detectors find there, somebody else has done. */
  readonly isAgain?: boolean;
  /** Where warnings and errors go. Default: nowhere. */
  readonly log?: Log;
  /** Called when the play is over, as long as its engine is there. */
  over?(engine: TestEngine, run: Run): Promise<void>;
}

/** A play, and how far it came. */
export interface LintedPlay {
  readonly name: string;
  /** How the run ended, for people: `succeeded with { paid: true }`. */
  readonly outcome: string;
  /** Whether a recorder watched. */
  readonly isWatched: boolean;
}

/** What plays share. */
export interface Notebook {
  readonly operations: Operations;
  /** Keys under which effects were made. */
  readonly made: Set<string>;
  readonly bodyActs: BodyAct[];
  /** Names of the workflows of which a body ran. */
  readonly entered: Set<string>;
}

export async function play(workflow: Workflow<never>, scene: Scene, notebook: Notebook): Promise<LintedPlay> {
  const { name, input, script, recorder } = scene;
  if (scene.isAgain !== true) {
    recorder?.clear();
    await scene.fresh();
  }
  const stage = new Stage(recorder, notebook.operations, notebook.made);
  const linted = lintedWorkflows(scene.workflows, stage);
  const engine = await testEngine({ workflows: [...linted.values()], logger: scene.log ?? SILENT });
  try {
    const run = await engine.start((linted.get(workflow) ?? workflow) as Workflow<unknown>, input);
    await script?.(run as Run<never>, engine, input);
    await engine.until(() => isOver(engine));
    notebook.bodyActs.push(...stage.finish());
    for (const one of stage.entered) notebook.entered.add(one);
    await scene.over?.(engine, run);
    return { name, outcome: await outcomeOf(run), isWatched: recorder !== null };
  } finally {
    await engine.close();
  }
}

async function isOver({ store }: TestEngine): Promise<boolean> {
  const rows = await store.runs({ limit: 1000 });
  return rows.every(({ state }) => isTerminal(state) || state === "parked");
}

async function outcomeOf(run: Run): Promise<string> {
  const { state, status, parked, waits } = await run.status();
  if (parked !== undefined) return `was parked: ${parked.message}`;
  if (!isTerminal(state)) return `did not end: it waits for ${waits.map(({ name }) => `"${name}"`).join(", ")}`;
  return run.result().then(
    (output) => (output === undefined ? status : `${status} with ${show(output)}`),
    (error: unknown) => `${status} with "${messageOf(error)}"`,
  );
}

const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
