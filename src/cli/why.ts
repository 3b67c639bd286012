import type { Command } from "commander";
import { why } from "../client/why.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { clean } from "./printable.ts";
import { findRun } from "./run-id.ts";

export function addWhy(program: Command): void {
  addCommand(program, "why <run>", "explain in plain words where a run stands, and what to do", [
    "pawl why 0193a7c2",
  ]).action(
    action<object, [string]>((call, text) =>
      withClient(call, async (pawl) => {
        const explanation = await why(pawl, await findRun(pawl, text));
        if (call.out.isJson) call.out.json(explanation);
        else
          for (const line of explanation.text)
            call.out.print(/^\S+( \S+){0,2}$/.test(line) ? call.out.color.bold(clean(line)) : clean(line));
        return EXIT.ok;
      }),
    ),
  );
}
