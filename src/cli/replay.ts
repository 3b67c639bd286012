import type { Command } from "commander";
import { hasCode, messageOf, PawlError } from "../base/errors.ts";
import type { ExportedRun } from "../client/export.ts";
import type { Workflow } from "../core/workflow.ts";
import { type ReplayResult, replay } from "../testing/replay.ts";
import { Registry } from "../worker/registry.ts";
import { action, addCommand } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { badFile, listExports, readExportFile } from "./export-files.ts";
import { loadWorkflows } from "./load.ts";
import type { Output } from "./output.ts";
import { clean, countOf } from "./printable.ts";
import { diffLines } from "./replay-diff.ts";
import { type KindOptions, kindOf, REPLAY_KINDS, replaySandboxed, replayTraces } from "./replay-kinds.ts";

/** What became of one file. */
type Outcome =
  | ({
      readonly file: string;
      readonly run: string;
      readonly kind: "replayed";
      readonly exported: ExportedRun;
    } & ReplayResult)
  /** No worker with this code would take the run. */
  | {
      readonly file: string;
      readonly run: string;
      readonly kind: "skipped";
      readonly ok: true;
      readonly message: string;
    };

export function addReplay(program: Command): void {
  addCommand(
    program,
    "replay <export> [files...]",
    "check that today's code reproduces exported runs; no step is run",
    [
      "pawl replay runs/order-17.json workflows/order.ts",
      "pawl replay runs/ workflows/*.ts --json",
      "pawl replay runs/order-17.json --kind trace",
      `pawl replay runs/order-17.json workflows/order.ts --kind counterfactual --answer review='{"risk":"high"}'`,
    ],
  )
    .option("--kind <kind>", `one of ${REPLAY_KINDS.join(", ")} (default: recorded)`)
    .option("--answer <call=json...>", "counterfactual: what a call answers instead of what is recorded")
    .option("--input <json>", "counterfactual: the input instead of the recorded one: JSON, @file or - for stdin")
    .addHelpText("after", HELP)
    .action(
      action<KindOptions, [string, string[]]>(async ({ out, options }, path, files) => {
        const kind = kindOf(options);
        const exports = listExports(path).map((file) => ({ file, runs: readExportFile(file) }));
        if (kind === "trace")
          return replayTraces(
            out,
            exports.flatMap(({ runs }) => runs),
          );
        const workflows = await loadWorkflows(assertFiles(files));
        if (kind !== "recorded") return replaySandboxed(out, kind, onlyOne(path, exports), workflows, options);
        const outcomes: Outcome[] = [];
        for (const { file, runs } of exports)
          for (const exported of runs) {
            const outcome = await replayOne(file, exported, workflows);
            outcomes.push(outcome);
            if (!out.isJson) print(out, outcome);
          }
        return conclude(out, outcomes);
      }),
    );
}

const HELP = `
Kinds: trace retells the run from its journal, without code; recorded checks that the code leads to it (default); sandbox plays it again on an
engine in memory, with the recorded answers; counterfactual does so with other code, answers or input, and shows where the ways part. Whatever the
kind, nothing is done outside.`;

function assertFiles(files: readonly string[]): readonly string[] {
  if (files.length > 0) return files;
  throw new PawlError(
    "invalid_argument",
    "missing required argument 'files': name the files that export the workflows, or use --kind trace.",
  );
}

function onlyOne(path: string, exports: readonly { readonly runs: readonly ExportedRun[] }[]): readonly ExportedRun[] {
  const [first, ...others] = exports;
  if (first !== undefined && others.length === 0) return first.runs;
  throw badFile(path, `${path} has several exports. Name one of them.`);
}

async function replayOne(file: string, exported: ExportedRun, workflows: readonly Workflow[]): Promise<Outcome> {
  const { id, workflow: name, version } = exported.run;
  const same = workflows.filter((one) => one.name === name);
  if (same.length === 0)
    throw new PawlError(
      "unknown_workflow",
      `${file} is a run of workflow "${name}", which none of the files exports. Name its file as well.`,
      { fields: { file, workflow: name } },
    );
  const workflow = new Registry(workflows).forRun(name, version);
  if (workflow === undefined) {
    const message = `Run ${id} was made by ${name} ${version}; the code has ${same.map((one) => one.version).join(", ")}, which would not take it.`;
    return { file, run: id, kind: "skipped", ok: true, message };
  }
  try {
    return { file, run: id, kind: "replayed", exported, ...(await replay(workflow, exported)) };
  } catch (cause) {
    if (!hasCode(cause, "invalid_argument")) throw cause;
    throw badFile(file, `${file}: ${messageOf(cause)}`, cause);
  }
}

function conclude(out: Output, outcomes: readonly Outcome[]) {
  const failed = outcomes.filter(({ ok }) => !ok).length;
  const skipped = outcomes.filter(({ kind }) => kind === "skipped").length;
  if (out.isJson) {
    const results = outcomes.map(({ file, run, ok, kind, message, ...rest }) => {
      const { diff, line } = rest as Partial<ReplayResult>;
      return { file, run, ok, skipped: kind === "skipped", message, diff, line };
    });
    out.json({ ok: failed === 0, replayed: outcomes.length - skipped, failed, skipped, results });
  } else if (outcomes.length > 1) {
    const others = `${skipped > 0 ? `, ${skipped} skipped` : ""}${failed > 0 ? `, ${failed} not reproduced` : ""}`;
    out.print(`\n${countOf(outcomes.length - skipped - failed, "run")} reproduced${others}.`);
  }
  return failed === 0 ? EXIT.ok : EXIT.failed;
}

function print(out: Output, outcome: Outcome): void {
  const { color } = out;
  const { file, ok, kind, message } = outcome;
  const word = kind === "skipped" ? color.yellow("skipped") : ok ? color.green("same") : color.red("differs");
  out.print(`${word}  ${file}  ${clean(message)}`);
  if (outcome.kind !== "replayed" || outcome.diff === undefined) return;
  for (const line of diffLines(outcome.exported, outcome.diff, outcome.line)) out.print(`  ${line}`);
}
