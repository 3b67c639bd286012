import type { Command } from "commander";
import { EVAL_CASE_SCHEMA } from "../testing/evals/case-schema.ts";
import { evalFamilies } from "../testing/evals/families.ts";
import type { EvalCase } from "../testing/evals/read-case.ts";
import { type EvalResult, runEval } from "../testing/evals/run-eval.ts";
import { action, addCommand } from "./command.ts";
import { assertWorkflows, CASES_FOLDER, type CaseFile, loadSubjects, readCases } from "./eval-files.ts";
import { EXIT } from "./exit-codes.ts";
import { assertNoNetwork, blockNetwork } from "./network.ts";
import type { Output } from "./output.ts";
import { clean, countOf, shortJson } from "./printable.ts";

interface EvalOptions {
  readonly workflows?: readonly string[];
  readonly families?: boolean;
  readonly retired?: boolean;
}

/** What came of one case. */
export interface FileResult extends EvalResult {
  readonly file: string;
  readonly family?: string;
  readonly owner?: string;
}

export function addEval(program: Command): void {
  const group = program
    .command("eval")
    .summary("play eval cases against workflows: run, schema")
    .description("Play eval cases against workflows: what happens to a run, and what must come of it.");
  addCommand(group, "run [cases...]", "play cases in virtual time; nothing outside is touched", [
    "pawl eval run --workflows workflows/refund.ts                 # all cases in evals/",
    "pawl eval run evals/denied.json --workflows workflows/refund.ts",
    "pawl eval run evals --workflows refund.evals.ts --families    # and what every durable workflow must stand",
  ])
    .option("--workflows <files...>", "files that export the workflows, or setups made with evalSetup()")
    .option("--families", "also play the eight families that are made from each case that ends well")
    .option("--retired", "also cases that are retired")
    .addHelpText("after", HELP)
    .action(
      action<EvalOptions, [string[]]>(async ({ options, out }, paths) => {
        const files = readCases(paths).filter((one) => options.retired === true || one.case.status !== "retired");
        const network = blockNetwork();
        const subjects = await loadSubjects(assertWorkflows(options.workflows));
        const results: FileResult[] = [];
        for await (const result of played(files, subjects, options.families === true)) {
          results.push(result);
          if (!out.isJson) printResult(out, result);
        }
        assertNoNetwork(network, "a case");
        return conclude(out, results);
      }),
    );
  addCommand(group, "schema", "print the JSON schema of eval cases", [
    "pawl eval schema > evals/case.schema.json",
  ]).action(
    action<object, []>(async ({ out }) => {
      out.print(JSON.stringify(EVAL_CASE_SCHEMA, null, 2));
      return EXIT.ok;
    }),
  );
}

const HELP = `
CASES are files or folders (default: ${CASES_FOLDER}). The tools of a workflow are answered by the events of the case, or by the usual answers of a
setup; none of their functions runs. A broken expectation is named as the case names it.

Exit codes: 0 if every case holds, 1 if one does not, 2 for bad usage or a case that cannot be read.`;

type Subjects = Awaited<ReturnType<typeof loadSubjects>>;

/** Plays one case after the other, and what is made from it. */
export async function* played(
  files: readonly CaseFile[],
  subjects: Subjects,
  withFamilies: boolean,
): AsyncGenerator<FileResult> {
  for (const { file, case: one } of files) {
    const result = await runEval(one, subjects);
    yield { file, ...ownerOf(one), ...result };
    if (!withFamilies || !result.ok || !result.status.includes("succeeded")) continue;
    for (const { family, case: made } of await evalFamilies(one, subjects))
      yield { file, family, ...ownerOf(one), ...(await runEval(made, subjects)) };
  }
}

function ownerOf({ owner }: EvalCase): { owner?: string } {
  return owner === undefined ? {} : { owner };
}

function conclude(out: Output, results: readonly FileResult[]) {
  const failed = results.filter(({ ok }) => !ok).length;
  const ok = failed === 0;
  if (out.isJson) out.json({ ok, cases: results.length, failed, results });
  else out.print(`\n${countOf(results.length - failed, "case")} held${failed > 0 ? `, ${failed} did not` : ""}.`);
  return ok ? EXIT.ok : EXIT.failed;
}

export function printResult(out: Output, { case_id: id, ok, status, broken, owner }: FileResult): void {
  const { color } = out;
  const word = ok ? color.green("held") : color.red("broken");
  out.print(
    `${word}  ${clean(id)}  ${status.join(", ")}${!ok && owner !== undefined ? `  owner ${clean(owner)}` : ""}`,
  );
  for (const { expectation, message, expected, actual } of broken) {
    out.print(`  ${color.red(expectation)}: ${clean(message)}`);
    if (expected !== undefined) out.print(`    expected ${shortJson(expected, 200)}`);
    if (actual !== undefined) out.print(`    was      ${shortJson(actual, 200)}`);
  }
}
