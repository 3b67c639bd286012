// Reruns of recorded runs
// A recorded run once more, in a sandbox: on an engine of its own, in virtual time, with the recorded answers, decisions, signals and times. Nothing
// is done outside. With the same code it shows that the run can be followed; with other code, another input or other answers it shows where
// the ways part.
import { PawlError } from "../base/errors.ts";
import { diffExports, type RunDiff } from "../client/diff.ts";
import { type ExportedRun, readExport } from "../client/export.ts";
import type { Workflow } from "../core/workflow.ts";
import type { EvalSubject } from "./evals/eval-setup.ts";
import type { EvalCase, EvalEvent } from "./evals/read-case.ts";
import { evalFromRun } from "./evals/regression.ts";
import { playEval } from "./evals/run-eval.ts";
import { fits } from "./evals/tool-names.ts";

export interface RerunOptions {
  /** What tools answer instead of what is recorded, by name or key: another word of a model, another ruling of a policy. */
  readonly answers?: Readonly<Record<string, unknown>>;
  /** Instead of the recorded input. */
  readonly input?: unknown;
  /** The runs below it, as exported. */
  readonly children?: readonly ExportedRun[];
}

/** A run as it was and as it would be. */
export interface Rerun {
  /** `a` is the recorded run, `b` the new one. */
  readonly diff: RunDiff;
  /** Calls that nothing answers: the code of today makes them, and the recorded run did not. */
  readonly unanswered: readonly string[];
  /** One or two sentences for people. */
  readonly message: string;
}

/** Plays a recorded run again without doing anything outside, and compares the two. */
export async function rerun(
  subject: EvalSubject | Workflow<never, unknown>,
  recorded: ExportedRun,
  options: RerunOptions = {},
): Promise<Rerun> {
  const exported = readExport(recorded);
  const { run } = exported;
  const name = "definition" in subject ? subject.name : subject.workflow.name;
  if (name !== run.workflow)
    throw new PawlError(
      "invalid_argument",
      `Run ${run.id} is one of workflow "${run.workflow}", not of "${name}". Pass that workflow to rerun.`,
      {
        fields: { run: run.id, workflow: run.workflow },
      },
    );
  const made = evalFromRun(exported, { people: true, children: options.children ?? [] });
  const { outcome, unanswered } = await playEval(changed(made, options, run.workflow), [subject]);
  const diff = diffExports(exported, outcome.exported);
  const isAsked = (name: string) => outcome.answered.some((call) => fits(name, { ...call, name: call.tool }));
  const unasked = Object.keys(options.answers ?? {}).filter((name) => !isAsked(name));
  return { diff, unanswered, message: `${messageOf(diff, unanswered)}${unaskedWords(unasked)}` };
}

function changed(one: EvalCase, { answers = {}, ...options }: RerunOptions, workflow: string): EvalCase {
  const events = one.events.map((event): EvalEvent => {
    if (event.type !== "tool_success") return event;
    const { tool } = event;
    const other = Object.entries(answers).find(([name]) => fits(name, { workflow, name: tool, key: tool }));
    return other === undefined ? event : { ...event, output: other[1] };
  });
  return { ...one, events, tools: answers, ...("input" in options && { input: options.input }) };
}

function messageOf({ a, b, first, isSame }: RunDiff, unanswered: readonly string[]): string {
  if (isSame) return `Run ${a.id} takes the same way again: ${b.status}.`;
  const parts = first === null ? "Every call came to the same" : `The ways part at ${first.kind} "${first.key}"`;
  const missing = unanswered.length === 0 ? "" : ` Nothing recorded answers ${unanswered.join(", ")}.`;
  return `${parts}; it was ${a.status}, and is ${b.status} now.${missing}`;
}

/** An answer to a call that is misspelt changes nothing, and would pass for one that makes no difference. */
function unaskedWords(names: readonly string[]): string {
  return names.length === 0
    ? ""
    : ` No call has asked for the answer to ${names.map((name) => `"${name}"`).join(", ")}.`;
}
