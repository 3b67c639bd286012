import type { Command } from "commander";
import type { Pawl } from "../client/pawl.ts";
import type { Run } from "../client/run.ts";
import type { StartOptions } from "../client/start.ts";
import { isTerminal } from "../core/transition.ts";
import { versionMismatch } from "../core/version-mismatch.ts";
import type { Workflow } from "../core/workflow.ts";
import { isHandled } from "../stores/version-line.ts";
import { handleOf } from "../worker/registry.ts";
import { action, addCommand, withPawl } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { type Errand, follow } from "./follow.ts";
import { readValue } from "./input.ts";
import { onInterrupt } from "./interrupt.ts";
import { loadWork, pickWorkflow } from "./load.ts";
import { stderrLog } from "./log.ts";

interface RunOptions {
  readonly key?: string;
  readonly id?: string;
  /** Commander's form of --no-wait. */
  readonly wait: boolean;
}

/** What was asked for on the command line. */
interface Request {
  readonly workflow: Workflow;
  readonly key: string | undefined;
  readonly id: string | undefined;
  /** `undefined`: none was given. */
  readonly input: { readonly value: unknown } | undefined;
}

export function addRun(program: Command): void {
  addCommand(program, "run <file> <workflow> [input]", "start a run, or go on with one, and work on it until it ends", [
    `pawl run workflows/hello.ts hello '{"name":"Ada"}'`,
    "pawl run workflows/shop.ts order @order.json --key order-17   # again: goes on, or gives the same result",
    "pawl run workflows/shop.ts order --id 0193a7c2-…              # goes on with that run",
  ])
    .option("--key <key>", "one run per key: if there is one, go on with it")
    .option("--id <id>", "the run's id: if there is one, go on with it")
    .option("--no-wait", `stop with exit code ${EXIT.waiting} as soon as the run waits for something`)
    .addHelpText(
      "after",
      "\nInput is JSON, @file or - for stdin. Progress goes to stderr, the result to stdout as JSON.",
    )
    .action(
      action<RunOptions, [string, string, string | undefined]>(async (call, file, name, text) => {
        const interrupt = onInterrupt();
        const { workflows, notifiers } = await loadWork([file]);
        const workflow = pickWorkflow(workflows, name, file);
        const input = text === undefined ? undefined : { value: await readValue(text, "INPUT") };
        let followed: string | null = null;
        // Why a run is parked is logged; of this one it is shown as its progress.
        const logger = stderrLog(call.out, (fields) => !("reason" in fields && fields.run === followed));
        return withPawl(call, { workflows, notifiers, logger }, async (pawl) => {
          const { run, isNew } = await startOrFind(pawl, {
            workflow,
            input,
            key: call.options.key,
            id: call.options.id,
          });
          followed = run.id;
          await assertWorkable(pawl, run.id, workflows, file);
          const again = `pawl run ${file} ${workflow.name} --id ${run.id}`;
          const errand: Errand = { ...call, pawl, run, isNew, interrupt, again, waits: call.options.wait };
          return follow(errand);
        }).finally(interrupt.forget);
      }),
    );
}

/** With input, the engine compares it with the known run's and refuses another one (C-9); without, the run is simply found. */
export async function startOrFind(
  pawl: Pawl,
  request: Request,
  how: Pick<StartOptions, "advance"> = {},
): Promise<{ readonly run: Run; readonly isNew: boolean }> {
  const known = await knownRun(pawl, request);
  if (known !== null && request.input === undefined) return { run: known, isNew: false };
  const { workflow, key, id, input } = request;
  const options = { ...how, ...(key !== undefined && { key }), ...(id !== undefined && { id }) };
  return { run: await pawl.start(workflow as Workflow<unknown>, input?.value, options), isNew: known === null };
}

async function knownRun(pawl: Pawl, { workflow, key, id }: Request): Promise<Run | null> {
  if (id !== undefined && (await pawl.store.run(id)) !== null) return pawl.get(id);
  return key === undefined ? null : pawl.find(workflow, key);
}

/** A run of a version that this file does not have would wait for ever. */
async function assertWorkable(pawl: Pawl, id: string, workflows: readonly Workflow[], file: string): Promise<void> {
  const row = await pawl.store.run(id);
  if (row === null || isTerminal(row.state)) return;
  if (isHandled(workflows.map(handleOf), row.workflow, row.version)) return;
  const { workflow, version } = row;
  const current = pickWorkflow(workflows, workflow, file).version;
  throw versionMismatch({ run: id, workflow, saved: version, current });
}
