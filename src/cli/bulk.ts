// `pawl cancel` and `pawl retry` for all runs that fit.
import { PawlError } from "../base/errors.ts";
import type { BulkOutcome, BulkRequest } from "../client/bulk.ts";
import type { Pawl } from "../client/pawl.ts";
import type { Call } from "./command.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { operatorOf } from "./operator.ts";
import { clean, countOf } from "./printable.ts";
import { readWhere } from "./selection.ts";

export interface BulkOptions {
  readonly where?: string;
  readonly dryRun?: boolean;
  readonly by?: string;
}

export const BULK_HELP = `
With --where, all runs that fit are meant, page by page. Each is acted on once, however often the command is given: one that was cut off is
simply given again. The audit log keeps who did it: pawl audit.`;

/** One run by its id, or all that fit: not both, and not neither. */
export function assertOneOrMany(run: string | undefined, { where, dryRun }: BulkOptions): void {
  const fault =
    (run === undefined) === (where === undefined)
      ? "Name one run, or give --where for all runs that fit"
      : dryRun === true && where === undefined
        ? "--dry-run goes with --where"
        : null;
  if (fault !== null) throw new PawlError("invalid_argument", `${fault}.`, { fields: { options: ["--where"] } });
}

type Action = Pick<BulkRequest, "action" | "reason" | "compensate">;

export async function actOnMany(call: Call<BulkOptions>, pawl: Pawl, action: Action): Promise<ExitCode> {
  const { options, out } = call;
  const dryRun = options.dryRun === true;
  const progress = out.progress(action.action === "cancel" ? "Cancelling" : "Retrying");
  const outcome = await pawl.operations
    .bulk({
      ...action,
      ...operatorOf(action.action, options.by),
      filter: readWhere(options.where ?? "", pawl.store.clock.now()),
      dryRun,
      onProgress: ({ matched }) => progress.update(`${matched} so far`),
    })
    .finally(progress.done);
  if (out.isJson) out.json(outcome);
  else print(call, action, outcome);
  return outcome.failed.length === 0 ? EXIT.ok : EXIT.failed;
}

const DONE = { cancel: "asked to stop", retry: "retried" } as const;

function print({ out }: Call<BulkOptions>, { action }: Action, outcome: BulkOutcome): void {
  const { matched, done, already, failed, dryRun } = outcome;
  if (dryRun) {
    out.print(`${countOf(matched, "run")} would be ${DONE[action]}. Nothing was changed.`);
    return;
  }
  const rest = already === 0 ? "" : `; ${already} had been before, or had ended`;
  out.print(`${done} of ${countOf(matched, "run")} ${done === 1 ? "was" : "were"} ${DONE[action]}${rest}.`);
  for (const { id, error } of failed) out.print(`  ${out.color.red("failed")}  ${clean(id)}: ${clean(error)}`);
}
