import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import type { Pawl } from "../client/pawl.ts";
import { editOf, readState } from "../client/run-state.ts";
import { validate } from "../core/schema.ts";
import { isHandled } from "../stores/version-line.ts";
import { handleOf } from "../worker/registry.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { noteIfNobodyWorks } from "./inheritor.ts";
import { readValue } from "./input.ts";
import { loadWorkflows } from "./load.ts";
import { findRun } from "./run-id.ts";

interface StateOptions {
  readonly file?: string;
  readonly code?: string;
  readonly by?: string;
  readonly reason?: string;
}

type Act = (call: Call<StateOptions>, pawl: Pawl, run: string) => Promise<void>;

/** What can be done with a run's state. */
const ACTS: Readonly<Record<string, Act>> = { show, edit };

export function addState(program: Command): void {
  addCommand(program, "state <act> <run>", "show what a run goes on from, or edit it: recorded, with who and why", [
    "pawl state show 0193a7c2 > state.json",
    `pawl state edit 0193a7c2 --file state.json --by ann --reason "the address was wrong"`,
  ])
    .option("--file <path>", "the edited state, as `pawl state show` printed it; - for stdin")
    .option("--code <path>", "a file with the workflow: the input is checked against its schema")
    .option("--by <name>", "who edits it")
    .option("--reason <text>", "why")
    .action(
      action<StateOptions, [string, string]>((call, name, text) =>
        withClient(call, async (pawl) => {
          const act = Object.hasOwn(ACTS, name) ? ACTS[name] : undefined;
          if (act === undefined)
            throw new PawlError(
              "invalid_argument",
              `"${name}" is no act. Give one of: ${Object.keys(ACTS).join(", ")}.`,
            );
          await act(call, pawl, await findRun(pawl, text));
          return EXIT.ok;
        }),
      ),
    );
}

async function show({ out }: Call<StateOptions>, pawl: Pawl, run: string): Promise<void> {
  out.print(JSON.stringify(await readState(pawl, run), null, 2));
}

async function edit({ options, out, url }: Call<StateOptions>, pawl: Pawl, run: string): Promise<void> {
  const { file } = options;
  const by = given(options.by, "--by", "who edits the run");
  const reason = given(options.reason, "--reason", "why");
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

function given(value: string | undefined, option: string, what: string): string {
  if (value !== undefined && value !== "") return value;
  throw new PawlError("invalid_argument", `${option} is missing: ${what}. Nothing was changed.`, {
    fields: { option },
  });
}

async function checkInput(file: string, name: string, version: string, input: unknown): Promise<void> {
  const workflows = await loadWorkflows([file]);
  const workflow = workflows.findLast((one) => one.name === name && isHandled([handleOf(one)], name, version));
  if (workflow === undefined)
    throw new PawlError("unknown_workflow", `${file} has no workflow "${name}" for version ${version}.`, {
      fields: { workflow: name, version },
    });
  await validate(workflow.definition.input, input, `The input of workflow "${name}"`);
}
