// `pawl test --effects FILE`: the crash tests of a file, or its workflow, each played once. Tests of one workflow are judged together, so that
// one comes to the branches that another does not take.
import type { Script } from "../testing/explorer/history.ts";
import type { Scene } from "../testing/lint/play.ts";
import { cellsOf, HEADER, type LintReport, questionsOf, remarksOf } from "../testing/lint/report.ts";
import { lintScenes } from "../testing/lint-effects.ts";
import type { NamedCrashTest } from "./crash-tests.ts";
import type { Output } from "./output.ts";
import { clean, countOf } from "./printable.ts";
import { table } from "./table.ts";

/** A workflow with the tests that play it. */
export interface TestedWorkflow {
  readonly workflow: NamedCrashTest["workflow"];
  readonly tests: readonly NamedCrashTest[];
}

export function byWorkflow(tests: readonly NamedCrashTest[]): TestedWorkflow[] {
  const workflows = [...new Set(tests.map(({ workflow }) => workflow))];
  return workflows.map((workflow) => ({ workflow, tests: tests.filter((test) => test.workflow === workflow) }));
}

export function lintTests({ workflow, tests }: TestedWorkflow): Promise<LintReport> {
  return lintScenes(
    workflow,
    tests.map((test) => sceneOf(workflow, test)),
  );
}

export function sceneOf(workflow: TestedWorkflow["workflow"], test: NamedCrashTest): Scene {
  const { name, input, script, recorder = null, fresh = () => {}, workflows = [] } = test;
  const all = [...new Set([workflow, ...workflows])];
  return { name, input, script: script as Script | undefined, recorder, fresh, workflows: all };
}

export function printLint(out: Output, name: string, report: LintReport): void {
  const { color } = out;
  out.print(color.bold(clean(name)));
  const rows = [[...HEADER], ...report.operations.map((one) => cellsOf(one, report).map(clean))];
  for (const line of table(rows, { indent: 2, width: out.width, header: color.dim })) out.print(line);
  out.print("");
  for (const remark of remarksOf(report)) out.print(`  ${clean(remark)}`);
  for (const finding of report.findings) {
    out.print(`\n  ${color.red("finding")}  ${clean(finding.message)}`);
    out.print(`           ${color.dim(questionsOf(finding))}`);
  }
  const verdict = report.ok ? color.green("No finding.") : color.red(`${countOf(report.findings.length, "finding")}.`);
  out.print(`\n  ${verdict}\n`);
}
