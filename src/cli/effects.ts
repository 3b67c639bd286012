import type { Command } from "commander";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { clean, shortJson } from "./printable.ts";
import { findRun } from "./run-id.ts";
import { type Cell, table } from "./table.ts";

export function addEffects(program: Command): void {
  addCommand(program, "effects <run>", "list what a run has done outside, and what became of it", [
    "pawl effects 0193a7c2",
    "pawl effects 0193a7c2 --json",
  ]).action(
    action<object, [string]>(({ options, out, ...call }, text) =>
      withClient({ options, out, ...call }, async (pawl) => {
        const run = await findRun(pawl, text);
        const effects = await pawl.get(run).effects();
        if (out.isJson) out.json(effects);
        else if (effects.length === 0)
          out.print(`Run ${run} has no effects: nothing that it did outside is in its ledger.`);
        else {
          const header: Cell[] = ["EFFECT", "STATUS", "CLASS", "GUARD", "TRIES", "KEY", "RESULT"];
          const rows = effects.map((one): Cell[] => [
            clean(one.effect),
            one.dry === true ? `${one.status} (dry)` : one.status,
            one.class,
            one.guard,
            String(one.attempts),
            clean(one.key),
            one.error === undefined ? (one.value === undefined ? "" : shortJson(one.value)) : clean(one.error),
          ]);
          for (const line of table([header, ...rows], { right: [4], width: out.width, header: out.color.dim }))
            out.print(line);
        }
        return EXIT.ok;
      }),
    ),
  );
}
