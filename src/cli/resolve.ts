import type { Command } from "commander";
import { PawlError, readProperty } from "../base/errors.ts";
import type { Pawl } from "../client/pawl.ts";
import { unlessNobodyCan } from "../client/unless-nobody-can.ts";
import type { Resolved } from "../core/journal.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { noteIfNobodyWorks } from "./inheritor.ts";
import { readValue } from "./input.ts";
import { noteNobodyUndoes } from "./nobody.ts";
import { clean } from "./printable.ts";
import { findRun } from "./run-id.ts";

interface ResolveOptions {
  readonly value?: string;
  readonly step?: string;
  readonly reason?: string;
}

/** Choices that end the run, in this process if they can. */
const STOPS: readonly string[] = ["cancel", "abort", "compensate"];

export function addResolve(program: Command): void {
  addCommand(program, "resolve <run> <choice>", "decide about a parked run; pawl why lists the choices", [
    "pawl resolve 0193a7c2 retry",
    'pawl resolve 0193a7c2 skip --reason "done by hand"',
    `pawl resolve 0193a7c2 complete --value '{"paymentId":"p-1"}'`,
  ])
    .option("--value <json>", "what the choice needs: JSON, @file or - for stdin")
    .option("--reason <text>", "why: skip needs it")
    .option("--step <key>", "the step it is about, if there are several")
    .action(
      action<ResolveOptions, [string, string]>(({ options, out, url }, text, choice) =>
        withClient({ options, out, url }, async (pawl) => {
          const value = options.reason === undefined ? await readValue(options.value, "--value") : reasonOf(options);
          const run = await findRun(pawl, text);
          const resolving = pawl
            .resolve(run, {
              choice,
              ...(value !== undefined && { value }),
              ...(options.step !== undefined && { step: options.step }),
            })
            .then(() => true);
          const isDone = await unlessNobodyCan(pawl, run, () => resolving);
          if (out.isJson) out.json({ run, choice });
          else out.print(`Decided for run ${run}: ${clean(choice)}.${await successorNote(pawl, run, choice)}`);
          if (isDone === null) await noteNobodyUndoes(out, url, pawl, run);
          else if (!STOPS.includes(choice) && choice !== "fresh") await noteIfNobodyWorks(out, url, pawl, run);
          return EXIT.ok;
        }),
      ),
    );
}

function reasonOf({ reason, value }: ResolveOptions): { readonly reason: string | undefined } {
  if (value === undefined) return { reason };
  throw new PawlError("invalid_argument", "--reason and --value do not go together: leave one of them out.");
}

/** Which run has taken the place of one that was started afresh. */
async function successorNote(pawl: Pawl, run: string, choice: string): Promise<string> {
  if (choice !== "fresh") return "";
  const resolved = (await pawl.get(run).journal()).findLast(({ type }) => type === "run.resolved");
  const { value } = (resolved?.payload ?? {}) as Partial<Resolved>;
  const successor = readProperty(value, "run");
  return typeof successor === "string" ? ` It goes on as run ${successor}.` : "";
}
