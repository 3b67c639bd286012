import type { Command } from "commander";
import { formatMs } from "../base/duration.ts";
import { type DiffSide, diffRuns, type RunDiff } from "../client/diff.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import type { Output } from "./output.ts";
import { clean, shortJson, truncate } from "./printable.ts";
import { findRun } from "./run-id.ts";
import { type Cell, table } from "./table.ts";

export function addDiff(program: Command): void {
  addCommand(
    program,
    "diff <a> <b>",
    "compare two runs: calls side by side, the first difference, effects, cost, times, outcome",
    ["pawl diff 0193a7c2 0193a8f0", "pawl diff 0193a7c2 0193a8f0 --json"],
  )
    .addHelpText("after", "\nExit codes: 0 if both came to the same, 1 if they differ.")
    .action(
      action<object, [string, string]>((call, a, b) =>
        withClient(call, async (pawl) => {
          const diff = await diffRuns(pawl, await findRun(pawl, a), await findRun(pawl, b));
          if (call.out.isJson) call.out.json(diff);
          else printDiff(call.out, diff);
          return diff.isSame ? EXIT.ok : EXIT.failed;
        }),
      ),
    );
}

const SHOWN = 40;

/** Two runs for people: what differs is marked, the first difference named. */
export function printDiff(out: Output, { a, b, rows, first, effects, isSame, sameInput }: RunDiff): void {
  const header: Cell[] = ["", "CALL", clean(a.id), clean(b.id)];
  const lines = rows.map((row): Cell[] => [
    row.isSame ? " " : "≠",
    `${row.kind} ${clean(row.key)}`,
    sideText(row.a),
    sideText(row.b),
  ]);
  for (const line of table([header, ...lines], { right: [], width: out.width, header: out.color.dim })) out.print(line);
  out.print("");
  if (!sameInput) out.print("Their inputs differ.");
  out.print(first === null ? "Every call came to the same." : `First difference: ${first.kind} "${clean(first.key)}".`);
  for (const { effect, a: one, b: other } of effects)
    out.print(`Effect "${clean(effect)}": ${one ?? "none"}, ${other ?? "none"}.`);
  const units = [...new Set([...Object.keys(a.cost), ...Object.keys(b.cost)])];
  for (const unit of units) out.print(`Cost: ${a.cost[unit] ?? 0} ${unit}, ${b.cost[unit] ?? 0} ${unit}.`);
  out.print(`Time: ${formatMs(a.tookMs)}, ${formatMs(b.tookMs)}.`);
  out.print(`Outcome: ${a.status} ${shortJson(a.outcome, 80)}, ${b.status} ${shortJson(b.outcome, 80)}.`);
  out.print(isSame ? "They are the same." : "They differ.");
}

function sideText(side: DiffSide | null): string {
  if (side === null) return "-";
  if (side.status === "open") return "open";
  const tries = side.attempts > 1 ? ` (${side.attempts} attempts)` : "";
  return truncate(
    `${side.status === "failed" ? "failed: " : ""}${side.value === null ? "done" : shortJson(side.value)}${tries}`,
    SHOWN,
  );
}
