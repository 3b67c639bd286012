import type { Command } from "commander";
import { abandon, listWorkers, settleEffect, type WorkerReport } from "../agent/recovery.ts";
import { PawlError } from "../base/errors.ts";
import { action, addCommand, type Call } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { clean, countOf } from "./printable.ts";
import { type Cell, table } from "./table.ts";
import { timeOf } from "./times.ts";

interface AgentsOptions {
  readonly abandon?: string;
  readonly reason?: string;
  readonly settle?: string;
  readonly worker?: string;
  readonly happened?: boolean;
}

export function addAgents(program: Command): void {
  addCommand(
    program,
    "agents <directory>",
    "list agents that work in directories: what they have left, and who is at it",
    [
      "pawl agents /var/lib/app/workers",
      'pawl agents workers --abandon w1 --reason "the request was withdrawn"',
      "pawl agents workers --worker w1 --settle 0193a7c2.1.0:tool.publish.call_4 --no-happened",
    ],
  )
    .option("--abandon <worker>", "give up what this worker has left: it goes to the archive")
    .option("--reason <text>", "why, for the archive")
    .option("--settle <effect>", "say what became of an effect of unknown outcome, by its key")
    .option("--worker <worker>", "whose effect it is")
    .option("--no-happened", "it did not happen, and may be done again (default: it did)")
    .addHelpText("after", STATES)
    .action(
      action<AgentsOptions, [string]>(async (call, root) => {
        await act(call.options, root);
        const workers = await listWorkers(root);
        if (call.out.isJson) call.out.json({ workers: workers.map(factsOf) });
        else print(call, root, workers);
        return EXIT.ok;
      }),
    );
}

const STATES = `
STATE is started, if there is a request and no checkpoint; incomplete, if there is a checkpoint and no answer; completed; empty; damaged, if its
files cannot be read. What is started or incomplete and has no PID goes on as soon as its worker starts again.`;

async function act(
  { abandon: worker, reason, settle, happened = true, ...more }: AgentsOptions,
  root: string,
): Promise<void> {
  if (worker !== undefined) {
    if (reason === undefined) throw missing("--reason", "why it is given up");
    if (!(await abandon({ root, worker }, reason))) throw nothingLeft(root, worker);
  }
  if (settle === undefined) return;
  if (more.worker === undefined) throw missing("--worker", "whose effect it is");
  await settleEffect({ root, worker: more.worker }, settle, happened);
}

function nothingLeft(root: string, worker: string): PawlError {
  const message = `Worker "${worker}" has nothing in ${root} that could be given up. See pawl agents ${root}.`;
  return new PawlError("invalid_argument", message, { fields: { worker, root } });
}

function missing(option: string, what: string): PawlError {
  return new PawlError("invalid_argument", `${option} is missing: say ${what}.`, { fields: { option } });
}

function factsOf({ startedAt, deadline, savedAt, unknownEffects, ...facts }: WorkerReport): object {
  const date = (time: number | null) => (time === null ? null : new Date(time));
  const effects = unknownEffects.map(({ key, tool, args }) => ({ key, tool, args }));
  return {
    ...facts,
    startedAt: date(startedAt),
    deadline: date(deadline),
    savedAt: date(savedAt),
    unknownEffects: effects,
  };
}

function print({ out }: Call<unknown>, root: string, workers: readonly WorkerReport[]): void {
  if (workers.length === 0) {
    out.note(`No worker has a directory in ${clean(root)}.`);
    return;
  }
  const { color } = out;
  const paints = {
    incomplete: color.yellow,
    started: color.yellow,
    completed: color.green,
    damaged: color.red,
    empty: color.dim,
  };
  const shown = (time: number | null) => (time === null ? "" : timeOf(time));
  const rows = workers.map((worker): Cell[] => [
    clean(worker.worker),
    { text: worker.state, paint: paints[worker.state] },
    worker.owner === null ? "" : String(worker.owner.pid),
    shown(worker.startedAt),
    shown(worker.savedAt),
    shown(worker.deadline),
  ]);
  const header: Cell[] = ["WORKER", "STATE", "PID", "STARTED", "SAVED", "DEADLINE"];
  for (const line of table([header, ...rows], { right: [2], width: out.width, header: color.dim })) out.print(line);
  for (const { worker, failure } of workers)
    if (failure !== null) out.print(color.yellow(clean(`${worker} has failed: ${failure}`)));
  for (const { worker, unknownEffects } of workers) {
    if (unknownEffects.length === 0) continue;
    out.print(
      color.yellow(
        clean(
          `${worker} has ${countOf(unknownEffects.length, "effect")} of unknown outcome. Look outside, then use --settle:`,
        ),
      ),
    );
    for (const { key, tool, args } of unknownEffects) out.print(clean(`  ${key}  ${tool} ${JSON.stringify(args)}`));
  }
}
