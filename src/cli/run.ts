import type { Command } from "commander";
import { formatMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { compareVersions, parseVersion } from "../base/semver.ts";
import type { Pawl } from "../client/pawl.ts";
import type { Run, RunStatus } from "../client/run.ts";
import { covers } from "../client/stranded.ts";
import { timeline } from "../client/timeline.ts";
import { why } from "../client/why.ts";
import type { Entry } from "../core/journal.ts";
import { isTerminal } from "../core/transition.ts";
import type { Workflow } from "../core/workflow.ts";
import { action, addCommand, type Call, withPawl } from "./command.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { readValue } from "./input.ts";
import { type Interrupt, onInterrupt } from "./interrupt.ts";
import { Live } from "./live.ts";
import { loadWorkflows } from "./load.ts";
import { stderrLog } from "./log.ts";
import type { Output } from "./output.ts";
import { clean, countOf, errorLine, jsonable } from "./printable.ts";
import { storeFlag } from "./store-url.ts";

interface RunOptions {
  readonly key?: string;
  readonly id?: string;
  /** Commander's form of --no-wait. */
  readonly wait: boolean;
}

type Stop = "ended" | "parked" | "waiting" | "interrupted";

/** What was asked for on the command line. */
interface Request {
  readonly file: string;
  readonly workflow: Workflow;
  readonly input: string | undefined;
}

const POLL_MS = 100;

export function addRun(program: Command): void {
  addCommand(program, "run <file> <workflow> [input]", "start a run, or go on with one, and work on it until it ends", [
    `pawl run workflows/hello.ts hello '{"name":"Ada"}'`,
    "pawl run workflows/checkout.ts checkout @order.json --key order-17   # again: goes on, or gives the same result",
    "pawl run workflows/checkout.ts checkout --id 0193a7c2-…              # goes on with that run",
  ])
    .option("--key <key>", "one run per key: if there is one, go on with it")
    .option("--id <id>", "the run's id: if there is one, go on with it")
    .option("--no-wait", `stop with exit code ${EXIT.waiting} as soon as the run waits for something`)
    .addHelpText(
      "after",
      "\nInput is JSON, @file or - for stdin. Progress goes to stderr, the result to stdout as JSON.",
    )
    .action(
      action<RunOptions, [string, string, string | undefined]>(async (call, file, name, input) => {
        const interrupt = onInterrupt();
        const workflows = await loadWorkflows([file]);
        const request: Request = { file, workflow: pick(workflows, name, file), input };
        const logger = stderrLog(call.out);
        const code = await withPawl(call, { workflows, logger }, (pawl) =>
          runIn(pawl, call, request, workflows, interrupt),
        );
        interrupt.forget();
        return code;
      }),
    );
}

/** The newest version of that name. */
function pick(workflows: readonly Workflow[], name: string, file: string): Workflow {
  const [newest] = workflows
    .filter((one) => one.name === name)
    .sort((a, b) => compareVersions(parseVersion(b.version), parseVersion(a.version)));
  if (newest !== undefined) return newest;
  const names = [...new Set(workflows.map((one) => one.name))].join(", ");
  throw new PawlError("unknown_workflow", `${file} has no workflow ${JSON.stringify(name)}. It has: ${names}.`, {
    fields: { workflow: name, file },
  });
}

async function runIn(
  pawl: Pawl,
  call: Call<RunOptions>,
  request: Request,
  workflows: readonly Workflow[],
  interrupt: Interrupt,
): Promise<ExitCode> {
  const known = await knownRun(pawl, call.options, request);
  // With input, the engine compares it with the known run's and refuses another one (C-9).
  const run = known !== null && request.input === undefined ? known : await start(pawl, call.options, request);
  await assertWorkable(pawl, run.id, workflows, request.file);
  const stop = await follow(pawl, run, call, known === null, interrupt);
  return stop === "interrupted" ? interrupted(pawl, run, call, request) : report(pawl, run, call, request, stop);
}

// Starting or finding the run

async function knownRun(pawl: Pawl, { key, id }: RunOptions, { workflow }: Request): Promise<Run | null> {
  if (id !== undefined && (await pawl.store.run(id)) !== null) return pawl.get(id);
  const held = key === undefined ? null : await pawl.store.key(`start:${workflow.name}`, key);
  return held === null ? null : pawl.get(held.run);
}

async function start(pawl: Pawl, { key, id }: RunOptions, { workflow, input }: Request): Promise<Run> {
  const value = await readValue(input, "INPUT");
  return pawl.start(workflow as Workflow<unknown>, value, {
    ...(key !== undefined && { key }),
    ...(id !== undefined && { id }),
  });
}

/** A run of a version that this file does not have would wait for ever. */
async function assertWorkable(pawl: Pawl, id: string, workflows: readonly Workflow[], file: string): Promise<void> {
  const row = await pawl.store.run(id);
  if (
    row === null ||
    isTerminal(row.state) ||
    workflows.some((one) => covers({ workflow: one.name, version: one.version }, row))
  )
    return;
  throw new PawlError(
    "invalid_argument",
    `Run ${id} belongs to ${row.workflow} ${row.version}, and no workflow in ${file} may go on with it. Give a file that has that version, or a later patch of it.`,
    {
      fields: { run: id, workflow: row.workflow, version: row.version },
    },
  );
}

// Following it

async function follow(
  pawl: Pawl,
  run: Run,
  { out, url, options }: Call<RunOptions>,
  isNew: boolean,
  interrupt: Interrupt,
): Promise<Stop> {
  const hint = (signal: string) => `pawl signal ${run.id} ${signal} '…'${storeFlag(url)}`;
  const live = new Live(out, () => pawl.store.clock.now(), hint);
  const old = await announce(run, out, isNew);
  live.prime(old);
  const stopped = new AbortController();
  try {
    return await Promise.race([
      watch(pawl, run, live, old.length),
      interrupt.asked.then((): Stop => "interrupted"),
      ...(options.wait ? [] : [untilWaiting(pawl, run.id, stopped.signal)]),
    ]);
  } finally {
    stopped.abort();
    live.stop();
  }
}

/** Says which run this is; returns the part of its journal that is no news. */
async function announce(run: Run, out: Output, isNew: boolean): Promise<readonly Entry[]> {
  const { bold, dim } = out.noteColor;
  const entries = await run.journal();
  const line = timeline(entries);
  const done = line.steps.filter((step) => step.status === "completed").length;
  const before = line.status === "unfinished" ? `goes on: ${countOf(done, "step")} done before` : "had ended before";
  out.note(`${bold(clean(`${line.workflow} ${line.version}`))}  run ${run.id}${isNew ? "" : dim(`  ${before}`)}`);
  return isNew ? [] : entries;
}

async function watch(pawl: Pawl, run: Run, live: Live, seen: number): Promise<Stop> {
  if (await isParkedForGood(pawl, run)) return "parked";
  for await (const entry of run.events()) {
    if (entry.seq < seen) continue;
    live.show(entry);
    if (entry.type === "run.parked") return "parked";
  }
  return "ended";
}

/** A decision that is on its way will move it. */
async function isParkedForGood(pawl: Pawl, run: Run): Promise<boolean> {
  const { state } = await run.status();
  if (state !== "parked") return false;
  return !(await pawl.store.inbox(run.id)).some((row) => row.kind === "decision");
}

/** Resolves when nobody has the run and nothing is due: it waits for time or for somebody. */
async function untilWaiting(pawl: Pawl, id: string, signal: AbortSignal): Promise<Stop> {
  while (!signal.aborted) {
    const row = await pawl.store.run(id);
    if (row === null || isTerminal(row.state)) break;
    const isDue = row.readyAt !== null || (row.wakeAt !== null && row.wakeAt <= pawl.store.clock.now());
    if (row.owner === null && !isDue) return "waiting";
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return new Promise(() => {});
}

// The end

async function report(pawl: Pawl, run: Run, call: Call<RunOptions>, request: Request, stop: Stop): Promise<ExitCode> {
  const { out, url } = call;
  const status = await run.status();
  if (out.isJson) out.json(resultOf(status));
  if (stop !== "ended") return reportWaiting(pawl, run, call, request, stop);
  const took = status.endedAt === null ? "" : formatMs(status.endedAt.getTime() - status.createdAt.getTime());
  if (status.state === "succeeded") {
    out.note(out.noteColor.green(`Succeeded in ${took}.`));
    if (!out.isJson) out.print(JSON.stringify(jsonable(status.output) ?? null, null, 2));
    return EXIT.ok;
  }
  const how = status.state === "failed" ? "Failed" : "Cancelled";
  out.note(out.noteColor.red(`${how} after ${took}: ${errorLine(status.error)}`));
  out.note(`  See every step: pawl show ${run.id}${storeFlag(url)}`);
  out.note(`  Go on from there: pawl retry ${run.id}${storeFlag(url)}`);
  return EXIT.failed;
}

function resultOf(run: RunStatus): object {
  const { id, workflow, version, status, state, output, error, stopReason, parked, waits } = run;
  const facts = { id, workflow, version, status, state, stopReason };
  if (state === "succeeded") return { ...facts, output: output ?? null };
  return {
    ...facts,
    ...(error !== undefined && { error }),
    ...(parked !== undefined && { parked }),
    ...(waits.length > 0 && { waits }),
  };
}

async function reportWaiting(
  pawl: Pawl,
  run: Run,
  call: Call<RunOptions>,
  request: Request,
  stop: Stop,
): Promise<ExitCode> {
  const { present, next } = await why(pawl, run.id);
  const lines = stop === "waiting" ? [...present, ...next] : next;
  for (const line of lines) call.out.note(`  ${clean(line)}`);
  call.out.note(`  Then go on with: ${againCommand(run, call, request)}`);
  return EXIT.waiting;
}

async function interrupted(pawl: Pawl, run: Run, call: Call<RunOptions>, request: Request): Promise<ExitCode> {
  const { out } = call;
  out.note("Stopping: running steps may finish. Ctrl-C again stops at once.");
  await pawl.close();
  const again = againCommand(run, call, request);
  if (out.isJson) out.json({ id: run.id, status: "interrupted", next: again });
  out.note(`Run ${run.id} keeps its progress. Go on with:\n  ${again}`);
  return EXIT.interrupted;
}

function againCommand(run: Run, { url }: Call<RunOptions>, { file, workflow }: Request): string {
  return `pawl run ${file} ${workflow.name} --id ${run.id}${storeFlag(url)}`;
}
