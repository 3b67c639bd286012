import { dirname } from "node:path";
import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import type { PhasesWorkflow } from "../flows/phases.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { noteIfNobodyWorks } from "./inheritor.ts";
import { readValue } from "./input.ts";
import { loadWorkflows } from "./load.ts";
import { readDocument } from "./next.ts";
import { clean } from "./printable.ts";

interface ImportCommandOptions {
  readonly workflowFile: string;
  readonly workflow?: string;
  readonly outputs?: string;
  readonly input?: string;
}

export function addImport(program: Command): void {
  addCommand(program, "import <document>", "make a state document a run that goes on where the document says", [
    "pawl import state.json --workflow-file workflows/bugfix.ts",
    "pawl import state.json --workflow-file workflows/bugfix.ts --outputs results --input '{\"issue\":7}'",
  ])
    .requiredOption("--workflow-file <file>", "the file with the workflow that the document is of, made with phases(…)")
    .option("--workflow <name>", "which of its workflows (default: the one the document names, or the only one)")
    .option("--outputs <folder>", "the folder with the document's output files (default: beside the document)")
    .option("--input <json>", "what the run is given: JSON, @file or - for stdin (default: what the document says)")
    .action(
      action<ImportCommandOptions, [string]>((call, file) =>
        withClient(
          call,
          async (pawl) => {
            const { options, out, url } = call;
            const document = readDocument(file);
            const workflow = pick(await loadWorkflows([options.workflowFile]), options, document);
            const { run, warnings } = await pawl.import(document, {
              workflow,
              outputs: options.outputs ?? dirname(file),
              ...(options.input !== undefined && { input: await readValue(options.input, "--input") }),
            });
            for (const warning of warnings) out.note(`warning: ${clean(warning)}`);
            if (out.isJson) out.json({ id: run.id, warnings });
            else out.print(run.id);
            await noteIfNobodyWorks(out, url, pawl, run.id);
            return EXIT.ok;
          },
          { create: true },
        ),
      ),
    );
}

function pick(workflows: readonly object[], { workflow, workflowFile }: ImportCommandOptions, document: unknown) {
  const made = workflows.filter((one): one is PhasesWorkflow => "plan" in one && "outputsOf" in one);
  const name = workflow ?? (document as { readonly workflow?: unknown } | null)?.workflow;
  const fitting = made.filter((one) => typeof name !== "string" || one.name === name);
  const [found] = fitting;
  if (found !== undefined && fitting.length === 1) return found;
  const names = made.map((one) => one.name).join(", ");
  throw new PawlError(
    "unknown_workflow",
    `${workflowFile} has ${fitting.length === 0 ? "no such workflow" : "several workflows"} made with phases(…). Name one with --workflow. It has: ${names || "none"}.`,
    { fields: { file: workflowFile } },
  );
}
