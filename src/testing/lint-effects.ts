// The linter of effects
// Plays a workflow and asks three questions about everything that it does: does a second run have effects outside, how is it noticed that it
// was done already, and does whoever looks only look.
import type { Run } from "../client/run.ts";
import type { Workflow } from "../core/workflow.ts";
import type { Script } from "./explorer/history.ts";
import { Operations } from "./lint/operation.ts";
import { type LintedPlay, type Notebook, play, type Scene } from "./lint/play.ts";
import { type LintReport, reportOf } from "./lint/report.ts";
import type { Recorder } from "./recorder.ts";
import type { TestEngine } from "./test-engine.ts";

/** Another way through a workflow. */
export interface LintPlay<I, O> {
  /** What the run is started with. Default: that of the first play. */
  readonly input?: I;
  /** What comes from outside. Default: nothing. */
  readonly script?: (run: Run<O>, engine: TestEngine, input: I) => Promise<void>;
}

/** What a workflow is played with. */
export interface LintOptions<I, O> {
  /** What stands for the outside world, made by `recorder()`: without one, nobody sees what steps do. It is cleared before each play. */
  readonly recorder?: Recorder;
  /** Signals, decisions and whatever else comes from outside. */
  readonly script?: (run: Run<O>, engine: TestEngine, input: I) => Promise<void>;
  /** Further plays, by their names: another input or another script, for the branches that the first does not take. */
  readonly plays?: Readonly<Record<string, LintPlay<I, O>>>;
  /** Children, and whatever else is started. */
  readonly workflows?: readonly Workflow<never, unknown>[];
  /** Resets the test's own fakes; called before each play. */
  readonly fresh?: () => void | Promise<void>;
}

/**
 * Plays a workflow in virtual time and tells which of its steps and effects leave open what keeps them from happening twice. What acts is run a
 * second time, and detectors are asked, to see whether it is so. Only what the plays come to is judged.
 *
 * ```ts
 * const report = await lintEffects(refund, request, { recorder: bank, script: approve });
 * assert(report.ok, report.toString());
 * ```
 */
export async function lintEffects<I, O>(
  workflow: Workflow<I, O>,
  input: I,
  options: LintOptions<I, O> = {},
): Promise<LintReport> {
  const { recorder = null, fresh = () => {}, workflows = [], script, plays = {} } = options;
  const main = workflow as Workflow<never, unknown>;
  const shared = { recorder, fresh, workflows: [...new Set([main, ...workflows])] };
  const others = Object.entries(plays).map(([name, other]) => ({ name, input, script: undefined, ...other }));
  const scenes = [{ name: "first", input, script }, ...others];
  return lintScenes(
    main,
    scenes.map((scene) => ({ ...shared, ...scene, script: scene.script as Script | undefined })),
  );
}

/** The same over any scenes of one workflow. */
export async function lintScenes(workflow: Workflow<never, unknown>, scenes: readonly Scene[]): Promise<LintReport> {
  const notebook: Notebook = { operations: new Operations(), made: new Set(), bodyActs: [], entered: new Set() };
  const plays: LintedPlay[] = [];
  for (const scene of scenes) plays.push(await play(workflow, scene, notebook));
  const played = scenes.flatMap(({ workflows }) => workflows).filter(({ name }) => notebook.entered.has(name));
  return reportOf(notebook, plays, [...new Set(played)]);
}
