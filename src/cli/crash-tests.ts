// The crash tests of a file: those that it exports, or else its workflows with the input of the command line.
import { PawlError } from "../base/errors.ts";
import type { Workflow } from "../core/workflow.ts";
import type { CrashTest } from "../testing/crash-test.ts";
import { collectWorkflows } from "./load.ts";

export interface NamedCrashTest extends CrashTest {
  readonly name: string;
}

/** What was asked for on the command line. */
export interface CrashTestChoice {
  readonly file: string;
  /** The name of an export or of a workflow; `null`: every crash test, or the one workflow. */
  readonly name: string | null;
  /** In place of what the file says. */
  readonly input: { readonly value: unknown } | null;
}

export function chooseTests(exported: object, { file, name, input }: CrashTestChoice): NamedCrashTest[] {
  const workflows = collectWorkflows(exported);
  const written = writtenTests(exported);
  const tests: NamedCrashTest[] =
    written.length > 0 ? written : workflows.map((workflow) => ({ name: workflow.name, workflow, input: undefined }));
  if (tests.length === 0) throw nothingToTest(file);
  const chosen = tests.filter((test) => name === null || name === test.name || name === test.workflow.name);
  if (chosen.length === 0) throw noSuchTest(file, name, tests);
  if (chosen.length > 1 && (written.length === 0 || input !== null)) throw ambiguous(file, chosen, input !== null);
  return chosen.map((test) => ({
    ...test,
    workflows: test.workflows ?? others(workflows, test.workflow),
    ...(input !== null && { input: input.value }),
  }));
}

/** Those that a file exports. */
export function writtenTests(exported: object): NamedCrashTest[] {
  return Object.entries(exported).flatMap(([name, value]: [string, unknown]) =>
    isCrashTest(value) ? [{ ...value, name: name === "default" ? value.workflow.name : name }] : [],
  );
}

function isCrashTest(value: unknown): value is CrashTest {
  if (typeof value !== "object" || value === null || !("workflow" in value)) return false;
  return collectWorkflows([value.workflow]).length === 1;
}

/** Child workflows that stand in the same file. */
export function others(workflows: readonly Workflow[], tested: Workflow): Workflow[] {
  return workflows.filter((one) => one.name !== tested.name || one.version !== tested.version);
}

function nothingToTest(file: string): PawlError {
  return new PawlError(
    "invalid_argument",
    `${file} exports neither a crash test nor a workflow. Export one: export default crashTest({ workflow, input });`,
    { fields: { file } },
  );
}

function noSuchTest(file: string, name: string | null, tests: readonly NamedCrashTest[]): PawlError {
  return new PawlError(
    "unknown_workflow",
    `${file} has no ${JSON.stringify(name)} to test. It has: ${namesOf(tests)}.`,
    {
      fields: { workflow: name, file },
    },
  );
}

function ambiguous(file: string, tests: readonly NamedCrashTest[], hasInput: boolean): PawlError {
  const why = hasInput ? "--input is for one of them" : "each needs an input of its own";
  return new PawlError(
    "invalid_argument",
    `${file} has several to test (${namesOf(tests)}), and ${why}. Name one after the file, or export crash tests: export const a = crashTest({ workflow, input });`,
    { fields: { file } },
  );
}

function namesOf(tests: readonly NamedCrashTest[]): string {
  return [...new Set(tests.map((test) => test.name))].join(", ");
}
