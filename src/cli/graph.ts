import { extname } from "node:path";
import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { type RunWay, wayFacts, wayOf, wayTaken } from "../client/run-way.ts";
import type { Graph } from "../core/graph.ts";
import type { Workflow } from "../core/workflow.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { mermaidOf } from "./graph-mermaid.ts";
import { svgOf } from "./graph-svg.ts";
import { loadWorkflows, pickWorkflow } from "./load.ts";
import { writeOutFile } from "./out-file.ts";
import { clean } from "./printable.ts";
import { findRun } from "./run-id.ts";

interface GraphOptions {
  readonly format?: string;
  readonly out?: string;
}

/** What is drawn. */
interface Drawing {
  readonly graph: Graph;
  readonly way: RunWay | null;
  readonly run: string | null;
}

export function addGraph(program: Command): void {
  addCommand(program, "graph <file> <workflow> [run]", "draw a machine or phases, and the way of a run through them", [
    "pawl graph workflows/refund.ts refund",
    "pawl graph workflows/refund.ts refund --out refund.svg",
    "pawl graph workflows/refund.ts refund 0193a7c2 --out run.svg   # its way is coloured",
  ])
    .option("--format <name>", "mermaid or svg (default: what the name of --out says, else mermaid)")
    .option("--out <file>", "write to this file instead of stdout")
    .addHelpText(
      "after",
      "\nA workflow that is a plain function has no way of its own: name a run, and what that has done is drawn.",
    )
    .action(
      action<GraphOptions, [string, string, string | undefined]>(async (call, file, name, text) => {
        const format = formatOf(call.options);
        const workflow = pickWorkflow(await loadWorkflows([file]), name, file);
        const drawing = text === undefined ? drawingOf(workflow, file) : await drawingOfRun(call, workflow, text);
        show(call, drawing, draw(format, workflow, drawing));
        return EXIT.ok;
      }),
    );
}

function formatOf({ format, out }: GraphOptions): "mermaid" | "svg" {
  const given = format ?? (out !== undefined && extname(out).toLowerCase() === ".svg" ? "svg" : "mermaid");
  if (given === "mermaid" || given === "svg") return given;
  throw new PawlError("invalid_argument", `--format ${given} is neither mermaid nor svg. Give one of them.`, {
    fields: { field: "format" },
  });
}

function drawingOf(workflow: Workflow, file: string): Drawing {
  const { name } = workflow;
  const { graph } = workflow.definition;
  if (graph !== undefined) return { graph, way: null, run: null };
  throw new PawlError(
    "invalid_argument",
    `Workflow "${name}" is a plain function: nothing is known of its way before it runs. Name a run: pawl graph ${file} ${name} RUN.`,
    { fields: { workflow: name, field: "run" } },
  );
}

function drawingOfRun(call: Call<GraphOptions>, workflow: Workflow, text: string): Promise<Drawing> {
  const { name } = workflow;
  return withClient(call, async (pawl) => {
    const run = pawl.get(await findRun(pawl, text));
    const status = await run.status();
    if (status.workflow !== name)
      throw new PawlError(
        "invalid_argument",
        `Run ${run.id} is one of workflow "${status.workflow}", not of "${name}". Name that one.`,
        {
          fields: { run: run.id, workflow: status.workflow },
        },
      );
    const entries = await run.journal();
    const graph = workflow.definition.graph ?? null;
    if (graph === null) return { ...wayTaken(entries), run: run.id };
    return { graph, way: wayOf(graph, entries), run: run.id };
  });
}

function draw(format: "mermaid" | "svg", { name, version }: Workflow, { graph, way, run }: Drawing): string {
  if (format === "mermaid") return `${mermaidOf(graph, way)}\n`;
  return svgOf(graph, way, { title: `${name} ${version}`, note: run === null ? "" : `run ${run}` });
}

function show({ options, out }: Call<GraphOptions>, { graph, way, run }: Drawing, text: string): void {
  if (options.out !== undefined) writeOutFile(options.out, text);
  if (out.isJson) {
    out.json({
      run,
      graph,
      way: way === null ? null : wayFacts(way),
      ...(options.out === undefined ? { text } : { file: options.out }),
    });
  } else if (options.out === undefined) process.stdout.write(text);
  else out.print(`The graph is in ${clean(options.out)}.`);
}
