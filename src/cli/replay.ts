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
    "replay <export> <files...>",
    "check that today's code reproduces exported runs; no step is run",
    ["pawl replay runs/order-17.json workflows/order.ts", "pawl replay runs/ workflows/*.ts --json"],
  ).action(
    action<object, [string, string[]]>(async ({ out }, path, files) => {
      const exports = listExports(path).map((file) => ({ file, exported: readExportFile(file) }));
      const workflows = await loadWorkflows(files);
      const outcomes: Outcome[] = [];
      for (const { file, exported } of exports) {
        const outcome = await replayOne(file, exported, workflows);
        outcomes.push(outcome);
        if (!out.isJson) print(out, outcome);
      }
      return conclude(out, outcomes);
    }),
  );
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
