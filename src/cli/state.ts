import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import type { Pawl } from "../client/pawl.ts";
import { rowOf } from "../client/run.ts";
import { editOf, readState } from "../client/run-state.ts";
import { validate } from "../core/schema.ts";
import type { Workflow } from "../core/workflow.ts";
import type { PhasesWorkflow } from "../flows/phases.ts";
import { isHandled } from "../stores/version-line.ts";
import { handleOf } from "../worker/registry.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { noteIfNobodyWorks } from "./inheritor.ts";
import { readValue } from "./input.ts";
import { loadWorkflows } from "./load.ts";
import { clean } from "./printable.ts";
import { recorded } from "./recorded.ts";
import { findRun } from "./run-id.ts";

interface StateOptions {
  readonly file?: string;
  readonly code?: string;
  readonly by?: string;
  readonly reason?: string;
  readonly force?: boolean;
}

type Act = (call: Call<StateOptions>, pawl: Pawl, run: string) => Promise<void>;

/** What can be done with a run's state. */
const ACTS: Readonly<Record<string, Act>> = { show, edit, accept, rebuild, fresh };

export function addState(program: Command): void {
  addCommand(
    program,
    "state <act> <run>",
    "show what a run goes on from, edit it, or mend its document: recorded, with who and why",
    [
      "pawl state show 0193a7c2 > state.json",
      `pawl state edit 0193a7c2 --file state.json --by ann --reason "the address was wrong"`,
      `pawl state accept 0193a7c2 --store file:runs --by ann --reason "phase_2 was done by hand"`,
      `pawl state rebuild 0193a7c2 --store file:runs --by ann --reason "saved by mistake"`,
      `pawl state fresh 0193a7c2 --store file:runs --by ann --reason "its journal is damaged"`,
    ],
  )
    .option("--file <path>", "the edited state, as `pawl state show` printed it; - for stdin")
    .option(
      "--code <path>",
      "a file with the workflow: the input is checked against its schema, and it says where output files are",
    )
    .option("--by <name>", "who does it")
    .option("--reason <text>", "why")
    .option("--force", "with fresh: although the run has acted outside")
    .action(
      action<StateOptions, [string, string]>((call, name, text) =>
        withClient(call, async (pawl) => {
          const act = Object.hasOwn(ACTS, name) ? ACTS[name] : undefined;
          if (act === undefined)
            throw new PawlError(
              "invalid_argument",
              `"${name}" is no act. Give one of: ${Object.keys(ACTS).join(", ")}.`,
            );
          const run = await runNamed(pawl, text);
          const work = () => act(call, pawl, run);
          await (act === show ? work() : recorded(call, pawl, run, work));
          return EXIT.ok;
        }),
      ),
    );
}

/** A run whose document cannot be read is known by nothing but its id. */
async function runNamed(pawl: Pawl, text: string): Promise<string> {
  const isHeld = (await pawl.documents.held()).some(({ run }) => run === text);
  return isHeld ? text : findRun(pawl, text);
}

async function show({ out }: Call<StateOptions>, pawl: Pawl, run: string): Promise<void> {
  out.print(JSON.stringify(await readState(pawl, run), null, 2));
}

async function edit({ options, out, url }: Call<StateOptions>, pawl: Pawl, run: string): Promise<void> {
  const { file } = options;
  const { by, reason } = who(options);
  const edited = await readValue(file === "-" ? "-" : `@${given(file, "--file", "the edited state")}`, "--file");
  const now = await readState(pawl, run);
  const changes = editOf(edited, now);
  if (options.code !== undefined && "input" in changes)
    await checkInput(options.code, now.workflow, changes.version ?? now.version, changes.input);
  await pawl.rewrite(run, { ...changes, cause: "edit", by, reason });
  if (out.isJson) out.json({ run, changed: Object.keys(changes) });
  else out.print(`Run ${run} goes on from the edited state.`);
  await noteIfNobodyWorks(out, url, pawl, run);
}

/** Takes over what somebody has changed in the file of a run's document. */
async function accept({ options, out, url }: Call<StateOptions>, pawl: Pawl, run: string): Promise<void> {
  const { by, reason } = who(options);
  const { workflow, version } = await rowOf(run, pawl.store);
  const code = options.code === undefined ? null : await codeOf(options.code, workflow, version);
  const isMade = code !== null && "outputsOf" in code;
  const accepted = await pawl.documents.accept(run, {
    by,
    reason,
    ...(isMade && { workflow: code as PhasesWorkflow }),
  });
  for (const warning of accepted.warnings) out.note(`warning: ${clean(warning)}`);
  if (out.isJson) out.json({ run, ...accepted });
  else if (accepted.edits.length === 0) out.print(`The document of run ${run} counts again.`);
  else out.print(`Run ${run} goes on from its document: ${clean(accepted.edits.join(", "))}.`);
  await noteIfNobodyWorks(out, url, pawl, run);
}

async function rebuild({ options, out, url }: Call<StateOptions>, pawl: Pawl, run: string): Promise<void> {
  await pawl.documents.rebuild(run, who(options));
  if (out.isJson) out.json({ run });
  else out.print(`The document of run ${run} is written again from its journal. What stood there is in quarantine/.`);
  await noteIfNobodyWorks(out, url, pawl, run);
}

async function fresh({ options, out, url }: Call<StateOptions>, pawl: Pawl, run: string): Promise<void> {
  const id = await pawl.documents.fresh(run, { ...who(options), force: options.force === true });
  if (out.isJson) out.json({ run, fresh: id });
  else out.print(`Run ${run} is in archive/. It begins afresh as run ${id}.`);
  await noteIfNobodyWorks(out, url, pawl, id);
}

function who(options: StateOptions): { readonly by: string; readonly reason: string } {
  return { by: given(options.by, "--by", "who decides"), reason: given(options.reason, "--reason", "why") };
}

function given(value: string | undefined, option: string, what: string): string {
  if (value !== undefined && value !== "") return value;
  throw new PawlError("invalid_argument", `${option} is missing: ${what}. Nothing was changed.`, {
    fields: { option },
  });
}

async function checkInput(file: string, name: string, version: string, input: unknown): Promise<void> {
  const workflow = await codeOf(file, name, version);
  await validate(workflow.definition.input, input, `The input of workflow "${name}"`);
}

async function codeOf(file: string, name: string, version: string): Promise<Workflow> {
  const workflows = await loadWorkflows([file]);
  const workflow = workflows.findLast((one) => one.name === name && isHandled([handleOf(one)], name, version));
  if (workflow === undefined)
    throw new PawlError("unknown_workflow", `${file} has no workflow "${name}" for version ${version}.`, {
      fields: { workflow: name, version },
    });
  return workflow;
}
