// Running cases
// A case is played against its workflow on an engine of its own, in virtual time. Nothing outside is touched.
import { PawlError } from "../../base/errors.ts";
import { exportRun } from "../../client/export.ts";
import type { ChildStarted, Ended } from "../../core/journal.ts";
import { type EffectRecord, ledgerOf } from "../../core/ledger.ts";
import type { Workflow } from "../../core/workflow.ts";
import { EvalEngine } from "./eval-engine.ts";
import type { EvalSubject, EvalTool, EvalToolCall } from "./eval-setup.ts";
import { checkAll, means, type Outcome } from "./expectations.ts";
import { statusesOf } from "./final-status.ts";
import { type Broken, Play } from "./play.ts";
import { type EvalCase, readEvalCase } from "./read-case.ts";
import { opened, Script } from "./script.ts";

/** What came of one case. */
export interface EvalResult {
  readonly case_id: string;
  readonly workflow: string;
  readonly ok: boolean;
  /** What the run is in the end, in all words that fit. */
  readonly status: readonly string[];
  readonly stop_reason: string | null;
  /** What does not hold, by the name of the expectation. */
  readonly broken: readonly Broken[];
  /** What was done outside, in order. */
  readonly did: readonly string[];
  /** How long the run took, in its own time. */
  readonly tookMs: number;
}

/** Plays a case and holds its expectations. `setups` are what `evalSetup` gave, or workflows. */
export async function runEval(
  one: EvalCase,
  setups: readonly (EvalSubject | Workflow<never, unknown>)[],
): Promise<EvalResult> {
  const { result } = await playEval(one, setups);
  return result;
}

/** The same, with all that the run has left: what families of cases are made from. */
export async function playEval(
  given: EvalCase,
  setups: readonly (EvalSubject | Workflow<never, unknown>)[],
): Promise<{ readonly result: EvalResult; readonly outcome: Outcome; readonly unanswered: readonly string[] }> {
  const one = readEvalCase(given);
  const setup = setupFor(one, setups);
  assertFlags(one, setup);
  const script = new Script(rulesOf(one, setup), one.initial_step === undefined);
  const known = [setup.workflow, ...(setup.workflows ?? [])];
  const engine: EvalEngine = await EvalEngine.open(known, (call, info, frame, fn) =>
    script.answer(call, info, frame, fn),
  );
  try {
    const play = new Play(one, setup, engine, script);
    await play.perform();
    const outcome = await outcomeOf(play.run, engine, script);
    const broken = [...play.broken, ...unanswered(script), ...(await checkAll({ one, setup, outcome }))];
    const calls = [...new Set(script.unanswered.map(({ tool }) => tool))];
    return { outcome, result: resultOf(one, outcome, broken), unanswered: calls };
  } finally {
    await engine.close();
  }
}

function resultOf(one: EvalCase, outcome: Outcome, broken: readonly Broken[]): EvalResult {
  const { journal, answered } = outcome;
  return {
    case_id: one.case_id,
    workflow: outcome.workflow,
    ok: broken.length === 0,
    status: statusesOf(outcome.state, journal),
    stop_reason: outcome.stopReason,
    broken,
    did: answered.filter(({ did }) => did).map(({ key, tool }) => (tool.endsWith("/undo") ? tool : key)),
    tookMs: (journal.at(-1)?.at ?? 0) - (journal[0]?.at ?? 0),
  };
}

/** Which of the workflows a case is about: the one that it names, or the only one there is. */
export function setupFor(
  one: Pick<EvalCase, "case_id" | "workflow">,
  setups: readonly (EvalSubject | Workflow<never, unknown>)[],
): EvalSubject {
  const all = setups.map((given) => ("definition" in given ? { workflow: given } : given));
  // What a setup says of a workflow counts, also if the workflow is there by itself.
  const best = all.filter(
    (setup, index) =>
      setup.tools !== undefined ||
      !all.some(
        (other, at) =>
          at !== index && other.workflow.name === setup.workflow.name && (other.tools !== undefined || at < index),
      ),
  );
  const named = one.workflow === undefined ? best : best.filter(({ workflow }) => workflow.name === one.workflow);
  const [setup, ...others] = named;
  const names = [...new Set(best.map(({ workflow }) => workflow.name))].join(", ");
  if (setup === undefined)
    throw new PawlError(
      "unknown_workflow",
      `Case "${one.case_id}" is about workflow "${one.workflow ?? ""}", which nothing here exports. There are: ${names || "none"}.`,
      {
        fields: { case: one.case_id, field: "workflow", allowed: names },
      },
    );
  if (others.length === 0) return { ...setup, workflows: [...(setup.workflows ?? []), ...childrenAmong(all, setup)] };
  throw new PawlError(
    "invalid_argument",
    `Case "${one.case_id}" does not say which workflow it is about. Give it "workflow": one of ${names}.`,
    {
      fields: { case: one.case_id, field: "workflow", allowed: names },
    },
  );
}

function childrenAmong(
  all: readonly EvalSubject[],
  { workflow, workflows = [] }: EvalSubject,
): Workflow<never, unknown>[] {
  const taken = new Set([workflow.name, ...workflows.map(({ name }) => name)]);
  const children = new Map(all.map((one) => [one.workflow.name, one.workflow]));
  return [...children].filter(([name]) => !taken.has(name)).map(([, child]) => child);
}

/** A flag that nothing known is called by would hold whatever happens. */
function assertFlags(one: EvalCase, setup: EvalSubject): void {
  if (setup.tools === undefined) return;
  const said = [
    ...Object.keys(setup.tools),
    ...Object.keys(one.tools ?? {}),
    ...one.events.flatMap((event) => ("tool" in event && event.tool !== undefined ? [event.tool] : [])),
  ];
  for (const flag of Object.keys(one.expected).filter(
    (name) => name.startsWith("must_not_") && name !== "must_not_end_as",
  )) {
    const names = one.map?.flags?.[flag] ?? setup.flags?.[flag] ?? [flag.slice("must_not_".length)];
    const isKnown = names.some((name) =>
      said.some((tool) => means({ one, setup }, name, { workflow: setup.workflow.name, name: tool, key: tool })),
    );
    if (isKnown) continue;
    throw new PawlError(
      "invalid_argument",
      `expected.${flag} means nothing that is known of workflow "${setup.workflow.name}". Say what with map.flags, or in the setup; its tools are ${Object.keys(setup.tools).join(", ")}.`,
      { fields: { case: one.case_id, field: `expected.${flag}`, allowed: Object.keys(setup.tools) } },
    );
  }
}

function rulesOf(one: EvalCase, setup: EvalSubject) {
  const means1 = (name: string, { workflow, tool, key }: EvalToolCall) =>
    means({ one, setup }, name, { workflow, name: tool, key });
  const usual = (call: EvalToolCall): EvalTool | null => {
    const own = Object.entries(one.tools ?? {}).find(([name]) => means1(name, call));
    if (own !== undefined) return { output: opened(own[1]) };
    const { tools = {} } = setup;
    return tools[call.tool] ?? Object.entries(tools).find(([name]) => means1(name, call))?.[1] ?? null;
  };
  return {
    events: one.events,
    fits: means1,
    usual,
    isInitial: (call: EvalToolCall) => one.initial_step !== undefined && means1(one.initial_step, call),
  };
}

function unanswered({ unanswered: calls }: Script): Broken[] {
  const tools = [...new Set(calls.map(({ tool }) => tool))];
  return tools.map((tool) => ({
    expectation: "events",
    message: `Nothing says what "${tool}" answers. Give the case an event { "type": "tool_success", "tool": "${tool}", "output": … }, or the setup a usual answer in \`tools\`.`,
  }));
}

async function outcomeOf(run: string, engine: EvalEngine, script: Script): Promise<Outcome> {
  const { pawl, store } = engine;
  const row = await store.run(run);
  if (row === null) throw new Error("the run of a case is in its store");
  const journal = await pawl.get(run).journal();
  const end = journal.at(-1);
  return {
    run,
    workflow: row.workflow,
    state: row.state,
    stopReason: row.stopReason,
    ...(end?.type === "run.succeeded" && { output: end.payload }),
    ...((end?.type === "run.failed" || end?.type === "run.cancelled") && { error: (end.payload as Ended).error }),
    journal,
    effects: await effectsOf(engine, run),
    answered: script.answered,
    exported: await exportRun(pawl, run),
  };
}

/** Of a run and all below it. */
async function effectsOf(engine: EvalEngine, run: string): Promise<EffectRecord[]> {
  const journal = await engine.pawl.get(run).journal();
  const children = journal
    .filter(({ type }) => type === "child.started")
    .map(({ payload }) => (payload as ChildStarted).child);
  const below = await Promise.all(children.map((child) => effectsOf(engine, child)));
  return [...ledgerOf(journal), ...below.flat()];
}
