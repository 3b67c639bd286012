// The kinds of replay beside the check of code: a trace that is told again, and a run that is played again in a sandbox.
import { PawlError } from "../base/errors.ts";
import type { ExportedRun } from "../client/export.ts";
import type { Workflow } from "../core/workflow.ts";
import { rerun } from "../testing/rerun.ts";
import { traceReplay } from "../testing/trace-replay.ts";
import { printDiff } from "./diff.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { readValue } from "./input.ts";
import type { Output } from "./output.ts";
import { clean } from "./printable.ts";

export const REPLAY_KINDS = ["trace", "recorded", "sandbox", "counterfactual"] as const;
export type ReplayKind = (typeof REPLAY_KINDS)[number];

export interface KindOptions {
  readonly kind?: string;
  readonly answer?: readonly string[];
  readonly input?: string;
}

export function kindOf({ kind = "recorded", answer, input }: KindOptions): ReplayKind {
  if (!(REPLAY_KINDS as readonly string[]).includes(kind))
    throw new PawlError("invalid_argument", `--kind "${kind}" is none of ${REPLAY_KINDS.join(", ")}.`, {
      fields: { option: "--kind", value: kind },
    });
  if (kind !== "counterfactual" && (answer ?? input) !== undefined)
    throw new PawlError(
      "invalid_argument",
      "--answer and --input change what happened: they are for --kind counterfactual.",
    );
  return kind as ReplayKind;
}

/** Retells runs from their traces alone. */
export function replayTraces(out: Output, runs: readonly ExportedRun[]): ExitCode {
  const frames = runs.map((run) => ({ run: run.run.id, frames: [...traceReplay(run)] }));
  if (out.isJson) out.json(frames);
  for (const { run, frames: all } of out.isJson ? [] : frames) {
    out.print(`Run ${run}`);
    for (const { seq, at, what, open } of all) {
      const waits = open.length === 0 ? "" : `  open: ${open.slice(0, 3).join(", ")}${open.length > 3 ? " …" : ""}`;
      out.print(`${String(seq).padStart(4)}  ${at.toISOString()}  ${clean(what)}${clean(waits)}`);
    }
  }
  return EXIT.ok;
}

/** Plays a run again without doing anything outside. In a sandbox a difference is a fault; a counterfactual asks for it. */
export async function replaySandboxed(
  out: Output,
  kind: "sandbox" | "counterfactual",
  [exported, ...children]: readonly ExportedRun[],
  workflows: readonly Workflow[],
  options: KindOptions,
): Promise<ExitCode> {
  if (exported === undefined) throw new Error("an export has at least one run");
  const workflow = workflows.find(({ name }) => name === exported.run.workflow);
  if (workflow === undefined)
    throw new PawlError(
      "unknown_workflow",
      `Run ${exported.run.id} is one of workflow "${exported.run.workflow}", which none of the files exports. Name its file as well.`,
      {
        fields: { workflow: exported.run.workflow },
      },
    );
  const others = workflows.filter((one) => one !== workflow) as unknown as readonly Workflow<never, unknown>[];
  const subject = { workflow: workflow as unknown as Workflow<never, unknown>, workflows: others };
  const input = options.input === undefined ? {} : { input: await readValue(options.input, "--input") };
  const result = await rerun(subject, exported, { answers: await answersOf(options), children, ...input });
  if (out.isJson) out.json(result);
  else {
    out.print(clean(result.message));
    out.print("");
    printDiff(out, result.diff);
  }
  return kind === "sandbox" && !result.diff.isSame ? EXIT.failed : EXIT.ok;
}

async function answersOf({ answer = [] }: KindOptions): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {};
  for (const given of answer) {
    const at = given.indexOf("=");
    if (at < 1)
      throw new PawlError(
        "invalid_argument",
        `--answer ${given} has no value. Give a call and what it answers: --answer review='{"risk":"high"}'.`,
      );
    answers[given.slice(0, at)] = await readValue(given.slice(at + 1), "--answer");
  }
  return answers;
}
