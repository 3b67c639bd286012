// What whoever works through a playbook is told: where the run stands and what comes next, from its state document and nothing else.
import { join } from "node:path";
import { type NextMove, nextOf } from "../core/next-of.ts";
import { stepKey } from "../core/outline.ts";
import type { StateDocument, StepRecord } from "../core/state-document.ts";

export interface PlaybookAnswer {
  readonly run: string;
  readonly playbook: string;
  readonly version: string;
  readonly key: string | null;
  /** "do": the step below. "wait": for somebody else. "decide": a person must choose. "nothing": it has ended. */
  readonly action: NextMove["action"];
  /** `phase.step`, or the phase. */
  readonly step: string | null;
  readonly phase: string | null;
  readonly status: StateDocument["status"];
  readonly instructions: string | null;
  /** The files that the step must leave. */
  readonly outputs: readonly string[];
  readonly begun_by: string | null;
  /** What the run was started with. */
  readonly input: unknown;
  /** What earlier steps have left. */
  readonly files: readonly AnswerFile[];
  readonly approvals: readonly AnswerApproval[];
  readonly blocked: NextMove["blocked"];
  readonly progress: readonly AnswerStep[];
  readonly warnings: readonly string[];
  /** All of it in words: what to do now. */
  readonly text: string;
}

interface AnswerFile {
  readonly step: string;
  readonly file: string;
  readonly path: string;
}

interface AnswerApproval {
  readonly id: string;
  readonly name: string;
  readonly approvers: readonly string[];
  readonly expires_at: string;
}

interface AnswerStep extends Pick<StepRecord, "status" | "done_by" | "error" | "skipped"> {
  readonly step: string;
}

/** How whoever asks goes on: commands for a shell, tools for an agent. */
export interface Phrases {
  next(): string;
  begin(step: string): string;
  done(step: string, outputs: readonly string[]): string;
  fail(step: string): string;
  /** What people do in a shell, whoever asks. */
  approve(id: string): string;
  resolve(run: string, choices: readonly string[]): string;
}

export interface Facts {
  readonly key: string | null;
  /** Where output files are. */
  readonly folder: string;
  readonly warnings: readonly string[];
}

export function answerOf(document: StateDocument, { key, folder, warnings }: Facts, say: Phrases): PlaybookAnswer {
  const next = nextOf(document);
  const work = next.waiting_for.find(({ kind }) => kind === "manual");
  const answer: Omit<PlaybookAnswer, "text"> = {
    run: next.run,
    playbook: document.workflow,
    version: document.workflow_version,
    key,
    action: next.action,
    step: work?.name ?? (next.phase === null ? null : stepKey(next.phase, next.step ?? undefined)),
    phase: next.phase,
    status: document.status,
    instructions: work?.instructions ?? null,
    outputs: work?.outputs ?? [],
    begun_by: work?.begun_by ?? null,
    input: (document.input as { readonly input?: unknown } | null)?.input ?? null,
    files: filesOf(document, folder),
    approvals: openApprovals(document),
    blocked: next.blocked,
    progress: progressOf(document),
    warnings: [...warnings, ...next.warnings],
  };
  return { ...answer, text: textOf(answer, document, say) };
}

function progressOf({ phase_order, phases }: StateDocument): AnswerStep[] {
  return recordsOf({ phase_order, phases }).map(([step, { status, done_by, error, skipped }]) => ({
    step,
    status,
    ...(done_by !== undefined && { done_by }),
    ...(error !== undefined && { error }),
    ...(skipped !== undefined && { skipped }),
  }));
}

function recordsOf({ phase_order, phases }: Pick<StateDocument, "phase_order" | "phases">): [string, StepRecord][] {
  return phase_order.flatMap((phase): [string, StepRecord][] => {
    const record = phases[phase] as StateDocument["phases"][string];
    const { steps, step_order = [] } = record;
    if (steps === undefined) return [[phase, record]];
    return step_order.map((step) => [stepKey(phase, step), steps[step] as StepRecord]);
  });
}

function filesOf(document: StateDocument, folder: string): AnswerFile[] {
  return recordsOf(document).flatMap(([step, { status, output_file, output_files }]) => {
    if (status !== "done") return [];
    const names = output_files?.map(({ file }) => file) ?? (output_file === undefined ? [] : [output_file]);
    return names.map((file) => ({ step, file, path: join(folder, file) }));
  });
}

function openApprovals({ approvals = [], status }: StateDocument): AnswerApproval[] {
  if (status === "done" || status === "failed") return [];
  return approvals
    .filter((one) => one.status === "requested")
    .map(({ id, name, approvers, expires_at }) => ({ id, name, approvers, expires_at }));
}

// In words

function textOf(answer: Omit<PlaybookAnswer, "text">, document: StateDocument, say: Phrases): string {
  const { action, blocked, run } = answer;
  switch (action) {
    case "do":
      return workText(answer, say);
    case "decide": {
      const choices = blocked?.choices ?? answer.blocked?.choices ?? [];
      const why = blocked === null ? parkText(document) : `"${blocked.at}" failed: ${blocked.error}`;
      return `Stopped. ${sentence(why)} A person must decide; you cannot. Ask somebody to run: ${say.resolve(run, choices)}. Then: ${say.next()}.`;
    }
    case "nothing":
      return endText(answer, document);
    case "run":
    case "wait":
      return waitText(answer, say);
  }
}

function workText(answer: Omit<PlaybookAnswer, "text">, say: Phrases): string {
  const { step, instructions, outputs, begun_by, files } = answer;
  const name = step ?? "";
  const left = outputs.length === 0 ? "It leaves no files." : `It must leave: ${outputs.join(", ")}.`;
  const there = files.map((file) => `  ${file.file} of ${file.step}: ${file.path}`);
  const ending = `When it is done: ${say.done(name, outputs)}. If it cannot be done: ${say.fail(name)}.`;
  const how =
    begun_by === null
      ? `First: ${say.begin(name)}. ${ending}`
      : `It was begun by ${begun_by} and is not done. If that was not you just now, do it again from its start. ${ending}`;
  return [
    `Next: step "${name}".`,
    `Instructions: ${instructions ?? ""}`,
    left,
    ...(there.length === 0 ? [] : ["Files of earlier steps:", ...there]),
    how,
  ].join("\n");
}

function waitText({ approvals, step }: Omit<PlaybookAnswer, "text">, say: Phrases): string {
  if (approvals.length === 0) return `The run waits at "${step ?? ""}". Look again: ${say.next()}.`;
  const lines = approvals.map(
    ({ id, name, approvers }) =>
      `"${name}" must be approved by ${approvers.join(" or ")}; whoever has done work of this run may not. They run: ${say.approve(id)}`,
  );
  return [`Wait. You cannot go on, nor approve this yourself.`, ...lines, `When it is decided: ${say.next()}.`].join(
    "\n",
  );
}

function endText({ run }: Omit<PlaybookAnswer, "text">, { status, cancelled, error }: StateDocument): string {
  if (cancelled === true) return `Run ${run} was cancelled: there is nothing left to do.`;
  if (status === "failed")
    return `Run ${run} has failed: ${sentence(error ?? "it does not say why")} There is nothing left to do.`;
  return `Run ${run} is done: there is nothing left to do.`;
}

function parkText({ waiting_for = [] }: StateDocument): string {
  const wait = waiting_for.find(({ kind }) => kind === "decision");
  return wait === undefined ? "It needs a decision" : `It is parked: ${wait.name}`;
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
