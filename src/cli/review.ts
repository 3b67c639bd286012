// `pawl review FILE WORKFLOW`: a sheet on which somebody can judge a design within half an hour (S2-11). What the definition does not say comes first.
import type { Command } from "commander";
import { formatMs } from "../base/duration.ts";
import type { Graph } from "../core/graph.ts";
import { MATTERS } from "../core/owners.ts";
import type { Workflow } from "../core/workflow.ts";
import type { LintedOperation } from "../testing/lint/answers.ts";
import { playWorkflow } from "./check/played-workflow.ts";
import { action, addCommand, type Call } from "./command.ts";
import { others, writtenTests } from "./crash-tests.ts";
import { byWorkflow } from "./effect-tests.ts";
import { EXIT } from "./exit-codes.ts";
import { loadModule, loadWorkflows, pickWorkflow } from "./load.ts";
import { assertNoNetwork, blockNetwork } from "./network.ts";
import { clean } from "./printable.ts";

interface ReviewSheet {
  readonly workflow: string;
  readonly version: string;
  /** What nobody has answered yet. */
  readonly open: readonly string[];
  readonly boundaries: readonly string[];
  readonly state: readonly string[];
  readonly transitions: readonly string[];
  readonly effects: readonly string[];
  readonly owners: readonly string[];
}

export function addReview(program: Command): void {
  addCommand(program, "review <file> <workflow>", "print a sheet for the review of a design, what is open first", [
    "pawl review checkout.crash.ts checkout",
  ])
    .addHelpText(
      "after",
      "\nWhat only a run can show, its effects and its state, comes from the crash tests that the file exports: they are played, with the network blocked.",
    )
    .action(
      action<object, [string, string]>(async (call, file, name) => {
        const workflows = await loadWorkflows([file]);
        const workflow = pickWorkflow(workflows, name, file);
        const played = await play(workflow, workflows, await loadModule(file));
        const sheet = sheetOf(workflow, played);
        if (call.out.isJson) call.out.json(sheet);
        else print(call, sheet);
        return EXIT.ok;
      }),
    );
}

/** What plays have shown; `null`: there are none. */
interface Shown {
  readonly operations: readonly LintedOperation[];
  readonly state: readonly string[];
}

async function play(workflow: Workflow, all: readonly Workflow[], exported: object): Promise<Shown | null> {
  const tests = writtenTests(exported).filter((test) => test.workflow.name === workflow.name);
  const [tested] = byWorkflow(tests.map((test) => ({ ...test, workflows: test.workflows ?? others(all, workflow) })));
  if (tested === undefined) return null;
  const network = blockNetwork();
  const { lint, runs } = await playWorkflow(tested, () => workflow);
  assertNoNetwork(network, workflow.name);
  const entries = runs.flatMap(({ exported: { entries } }) => entries);
  const state = new Set(entries.flatMap(({ type, key }) => (type === "state.patched" && key !== null ? [key] : [])));
  return { operations: lint.operations, state: [...state] };
}

function sheetOf(workflow: Workflow, shown: Shown | null): ReviewSheet {
  const { definition, name, version } = workflow;
  const { owners, input, output, graph, budget, flow, deadlineMs, uses } = definition;
  return {
    workflow: name,
    version,
    open: openPoints(workflow, shown),
    boundaries: [
      `input: ${input === undefined ? "anything" : "checked by a schema"}; output: ${output === undefined ? "anything" : "checked by a schema"}`,
      `a run may take ${formatMs(deadlineMs)} in all`,
      `${budget === null ? "no budget" : "a budget limits what it may spend"}; ${flow === null ? "no limit on runs at a time" : "runs at a time, or their rate, are limited"}`,
      `uses: ${uses === null ? "nothing that it names" : Object.keys(uses).join(", ")}`,
    ],
    state: shown === null ? [] : shown.state.map((key) => `"${key}"`),
    transitions: graph === undefined ? [] : transitionsOf(graph),
    effects: (shown?.operations ?? []).filter(({ kind }) => kind !== "step").map(effectLine),
    owners: MATTERS.map((matter) => `${matter}: ${owners[matter] ?? "nobody"}`),
  };
}

function transitionsOf({ edges }: Graph): string[] {
  return edges.map(({ from, to }) => `${from} -> ${to}`);
}

function effectLine({ name, class: level, detectedBy, undo, hasApproval }: LintedOperation): string {
  const undone = undo === "none" ? "cannot be undone" : "can be undone";
  return `"${name}" (${level ?? "no class"}): recognised by ${detectedBy ?? "nothing"}, ${undone}${hasApproval ? ", needs an approval" : ""}`;
}

function openPoints(workflow: Workflow, shown: Shown | null): string[] {
  const { definition } = workflow;
  const missing = MATTERS.filter((matter) => definition.owners[matter] === null);
  const unguarded = (shown?.operations ?? []).filter(({ secondRun }) => secondRun !== "none");
  return [
    ...(shown === null
      ? ["Which effects has it, and what makes each safe to repeat? Export a crash test, and they are shown."]
      : []),
    ...unguarded.map(({ name }) => `What happens if "${name}" runs twice?`),
    ...(missing.length === 0 ? [] : [`Who owns runs that are ${missing.join(", ")}?`]),
    ...(definition.isVersioned ? [] : ["Which version is this? It has none of its own."]),
    ...(definition.input === undefined ? ["What may its input be? No schema says so."] : []),
    ...(definition.graph === undefined
      ? ["Which ways may a run take? A plain function does not show them; describe them here."]
      : []),
    "What happens after a part of it was done, and nobody can go on?",
    "What would make you stop a deployment of it?",
  ];
}

function print({ out }: Call<object>, sheet: ReviewSheet): void {
  const { color } = out;
  out.print(color.bold(`Design review of ${clean(sheet.workflow)} ${sheet.version}`));
  const part = (title: string, lines: readonly string[], none: string) => {
    out.print(`\n${color.bold(title)}`);
    for (const line of lines.length === 0 ? [none] : lines)
      out.print(`  ${title === "Open points" ? "[ ] " : ""}${clean(line)}`);
  };
  part("Open points", sheet.open, "none");
  part("Boundaries", sheet.boundaries, "none");
  part("State", sheet.state, "none was seen");
  part("Transitions", sheet.transitions, "a plain function: its steps, in the order of the code");
  part("Effects", sheet.effects, "none were seen");
  part("Owners", sheet.owners, "none");
}
