// Eval cases in files, one by one or in a folder, and the setups that they are played against.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf, PawlError } from "../base/errors.ts";
import type { Workflow } from "../core/workflow.ts";
import { INCIDENTS_FILE } from "../observe/incidents.ts";
import type { EvalSubject } from "../testing/evals/eval-setup.ts";
import { type EvalCase, parseEvalCase } from "../testing/evals/read-case.ts";
import { badFile } from "./export-files.ts";
import { collectWorkflows, loadModule } from "./load.ts";

export interface CaseFile {
  readonly file: string;
  readonly case: EvalCase;
}

/** Where cases are unless somebody says otherwise. */
export const CASES_FOLDER = "evals";
export const CASES_HELP: string = `the folder of eval cases, with incidents.json in it (default: ${CASES_FOLDER})`;

/** The cases of files and folders, in the order of their names. */
export function readCases(paths: readonly string[]): CaseFile[] {
  const files = (paths.length === 0 ? [CASES_FOLDER] : paths).flatMap(listCases);
  const cases = files.map((file) => ({ file, case: readCase(file) }));
  const seen = new Map<string, string>();
  for (const { file, case: one } of cases) {
    const other = seen.get(one.case_id);
    if (other !== undefined && other !== file)
      throw badFile(
        file,
        `${file}: case_id is "${one.case_id}", and so is that of ${other}. Give each case an id of its own.`,
      );
    seen.set(one.case_id, file);
  }
  return cases;
}

function listCases(path: string): string[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined)
    throw badFile(
      path,
      `There is no file or folder ${path}. Give eval cases, or a folder of them; \`pawl export RUN --eval\` makes one.`,
    );
  if (!stats.isDirectory()) return [path];
  const names = readdirSync(path, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => name.endsWith(".json") && !name.endsWith(INCIDENTS_FILE));
  if (files.length === 0)
    throw badFile(
      path,
      `There is no .json file in ${path}. \`pawl export RUN --eval --out ${join(path, "case.json")}\` makes one.`,
    );
  return files.sort().map((name) => join(path, name));
}

export function readCase(file: string): EvalCase {
  try {
    return parseEvalCase(readFileSync(file, "utf8"));
  } catch (cause) {
    throw badFile(file, `${file}: ${messageOf(cause)}`, cause);
  }
}

/** What files export: setups made with evalSetup(), and workflows. */
export async function loadSubjects(files: readonly string[]): Promise<(EvalSubject | Workflow<never, unknown>)[]> {
  const found = new Set<EvalSubject | Workflow<never, unknown>>();
  for (const file of files) {
    const exported = await loadModule(file);
    const setups = Object.values(exported).filter(isSetup);
    const workflows = collectWorkflows(exported);
    if (setups.length + workflows.length === 0)
      throw badFile(
        file,
        `${file} exports neither a workflow nor a setup. Export one: export const refundEvals = evalSetup({ workflow: refund, tools: { … } });`,
      );
    for (const one of [
      ...setups,
      ...workflows.filter((workflow) => !setups.some((setup) => setup.workflow === workflow)),
    ])
      found.add(one);
  }
  return [...found];
}

function isSetup(value: unknown): value is EvalSubject {
  if (typeof value !== "object" || value === null || !("workflow" in value)) return false;
  return collectWorkflows([value.workflow]).length === 1;
}

export function assertWorkflows(files: readonly string[] | undefined): readonly string[] {
  if (files !== undefined && files.length > 0) return files;
  throw new PawlError(
    "invalid_argument",
    "--workflows is missing. Name the files that export the workflows, or setups for their cases: --workflows workflows/refund.ts.",
    {
      fields: { option: "--workflows" },
    },
  );
}
