// Work that is done outside
// A person or an outside agent says when it begins a manual step, and when it is done or has failed. The run's own state says what may be said:
// only about the step that it stands at, and nobody finishes what was not begun.
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { PawlError, readProperty } from "../base/errors.ts";
import { MANUAL, MANUAL_SIGNAL, type ManualMessage, type ManualWork, type OutputFile } from "../core/outline.ts";
import { isTerminal } from "../core/transition.ts";
import { makeFolder, replaceFile, sha256 } from "../files/atomic-file.ts";
import { folderName } from "../files/folder-name.ts";
import { DEFAULT_FOLDER, formOf } from "../flows/output-files.ts";
import { type SendPorts, sendOnce, stateOf } from "./own-signals.ts";
import { rowOf, runHasEnded } from "./run.ts";

/** What is said about a step that is done outside. */
export type StepReport = {
  /** Who says it. */
  readonly by: string;
} & (
  | { readonly action: "begin" }
  /** `outputs`: where the files are that it was for, by the names that the step gives them. They are copied to the run's output files. */
  | { readonly action: "done"; readonly outputs?: Readonly<Record<string, string>>; readonly folder?: string }
  | { readonly action: "fail"; readonly reason: string }
);

/** Records it. Throws `invalid_argument` if the run does not stand at that step, or this cannot follow on what was said before. */
export async function reportStep(ports: SendPorts, run: string, step: string, report: StepReport): Promise<void> {
  const work = await workOf(ports, run, step);
  assertText(run, "by", report.by);
  const message = await messageOf(ports, run, work, report);
  await sendOnce(ports, run, MANUAL_SIGNAL, `manual-${work.ticket}-${idOf(report, work)}`, message);
}

/** Beginning again is saying so again; who ends it first has ended it. */
function idOf({ action, by }: StepReport, { begunBy }: ManualWork): string {
  return action === "begin" ? `begin-${begunBy ?? ""}-${sha256(by).slice(0, 16)}` : "end";
}

async function workOf(ports: SendPorts, run: string, step: string): Promise<ManualWork> {
  const { state } = await rowOf(run, ports.store);
  if (isTerminal(state)) throw runHasEnded(run, `what was said about "${step}"`);
  const work = (await stateOf(ports, run))[MANUAL] as ManualWork | null | undefined;
  if (work?.at === step || work?.at.endsWith(`.${step}`) === true) return work;
  const now = work == null ? "it waits for no work from outside" : `it waits for "${work.at}"`;
  throw refused(run, step, `the run does not stand there: ${now}. \`pawl next ${run}\` tells what comes next.`);
}

async function messageOf(ports: SendPorts, run: string, work: ManualWork, report: StepReport): Promise<ManualMessage> {
  const { ticket, at, begunBy } = work;
  const { by, action } = report;
  if (action === "begin") return { ticket, by, action };
  if (begunBy === undefined) throw refused(run, at, "nobody has begun it. Begin it first.");
  if (action === "fail") {
    assertText(run, "reason", report.reason);
    return { ticket, by, action, reason: report.reason };
  }
  if (action !== "done") throw refused(run, at, `"${String(action)}" is no action. Give begin, done or fail.`);
  return { ticket, by, action, outputs: await outputsOf(ports, run, work, report) };
}

/** Files are copied before anything is said of them: what the journal names is there. */
async function outputsOf(
  { store }: SendPorts,
  run: string,
  work: ManualWork,
  { outputs = {}, folder }: Extract<StepReport, { action: "done" }>,
): Promise<OutputFile[]> {
  const target = folder ?? store.files?.outputs(run) ?? join(DEFAULT_FOLDER, folderName(run));
  const unknown = Object.keys(outputs).find((name) => !work.outputs.includes(name));
  if (unknown !== undefined)
    throw refused(run, work.at, `it has no output "${unknown}". It has: ${work.outputs.join(", ") || "none"}.`);
  const missing = work.outputs.find((name) => outputs[name] === undefined);
  if (missing !== undefined) throw refused(run, work.at, `its output "${missing}" is missing. Give the file.`);
  const found: OutputFile[] = [];
  for (const name of work.outputs) found.push(await taken(run, work, name, outputs[name] as string, target));
  return found;
}

async function taken(run: string, { at, ticket }: ManualWork, name: string, from: string, target: string) {
  let content: Buffer;
  try {
    content = await readFile(from);
  } catch (cause) {
    throw refused(run, at, `the file ${from} cannot be read (${String(readProperty(cause, "code"))}).`);
  }
  const path = join(target, name);
  if (resolve(path) !== resolve(from)) {
    await makeFolder(dirname(path));
    await replaceFile(path, content, { key: `${run}/${at}/${ticket}`, attempt: 2, signal: NEVER });
  }
  return { file: name, sha256: sha256(content), bytes: content.byteLength, as: formOf(name) };
}

const NEVER = new AbortController().signal;

function assertText(run: string, field: string, value: unknown): void {
  if (typeof value === "string" && value.trim() !== "") return;
  throw new PawlError("invalid_argument", `\`${field}\` is empty. Say ${field === "by" ? "who" : "why"}.`, {
    fields: { run, field },
  });
}

function refused(run: string, step: string, why: string): PawlError {
  return new PawlError("invalid_argument", `"${step}" of run ${run} cannot be reported: ${why}`, {
    fields: { run, step },
  });
}
