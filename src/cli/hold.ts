import type { Command } from "commander";
import type { Hold } from "../client/operations.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { wholeNumber } from "./input.ts";
import { operatorOf } from "./operator.ts";
import { clean } from "./printable.ts";
import { findRun } from "./run-id.ts";
import { type Cell, table } from "./table.ts";
import { timeOf } from "./times.ts";

export function addHold(program: Command): void {
  addCommand(program, "hold <run>", "keep a run from retention, whatever its age", [
    'pawl hold 0193a7c2 --reason "complaint 4711"',
  ])
    .requiredOption("--reason <text>", "why it is kept")
    .option("--by <name>", "who keeps it (default: the user of this machine)")
    .action(
      action<{ readonly reason: string; readonly by?: string }, [string]>((call, text) =>
        withClient(call, async (pawl) => {
          const { options, out } = call;
          const run = await findRun(pawl, text);
          const by = operatorOf("hold", options.by);
          const hold = await pawl.operations.hold(run, { ...by, reason: options.reason });
          const isOurs = hold.by === by.by && hold.reason === options.reason;
          if (out.isJson) out.json(hold);
          else if (isOurs) out.print(`Run ${run} is held. End it with: pawl release ${run}`);
          else out.print(`Run ${run} was held before: by ${clean(hold.by)}, because ${clean(hold.reason)}.`);
          return EXIT.ok;
        }),
      ),
    );
}

export function addRelease(program: Command): void {
  addCommand(program, "release <run>", "end a hold: the run goes when its retention is over", ["pawl release 0193a7c2"])
    .option("--by <name>", "who ends it (default: the user of this machine)")
    .action(
      action<{ readonly by?: string }, [string]>((call, text) =>
        withClient(call, async (pawl) => {
          const run = await findRun(pawl, text);
          const hold = await pawl.operations.release(run, operatorOf("release", call.options.by));
          if (call.out.isJson) call.out.json({ run, hold });
          else call.out.print(hold === null ? `Run ${run} was not held.` : `Run ${run} is no longer held.`);
          return EXIT.ok;
        }),
      ),
    );
}

interface HoldsOptions {
  readonly limit: string;
  readonly after?: string;
}

export function addHolds(program: Command): void {
  addCommand(program, "holds", "list the runs that are held", ["pawl holds"])
    .option("--limit <n>", "how many", "50")
    .option("--after <run>", "go on behind this run")
    .action(
      action<HoldsOptions, []>((call) =>
        withClient(call, async (pawl) => {
          const { limit, after } = call.options;
          const page = { limit: wholeNumber(limit, "--limit", 1), ...(after !== undefined && { after }) };
          const holds = await pawl.operations.holds(page);
          if (call.out.isJson) call.out.json({ holds });
          else if (holds.length === 0) call.out.note("No run is held.");
          else printHolds(call, holds);
          return EXIT.ok;
        }),
      ),
    );
}

function printHolds({ out }: Call<HoldsOptions>, holds: readonly Hold[]): void {
  const header: Cell[] = ["RUN", "SINCE", "BY", "REASON"];
  const rows = holds.map(({ run, at, by, reason }): Cell[] => [run, timeOf(at), clean(by), clean(reason)]);
  for (const line of table([header, ...rows], { width: out.width, header: out.color.dim })) out.print(line);
}
