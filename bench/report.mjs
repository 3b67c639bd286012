import { cpus, totalmem, type } from "node:os";
import { loadDriver } from "../dist/stores/sqlite/driver.js";

export const HEAD = ["Scenario", "Pawl", "Bare", "Ratio", "Target", "Met"];

/** The table as it is printed: columns aligned, marks in words. */
export function table(rows) {
  const lines = [HEAD, ...rows.map(rowCells)];
  const widths = HEAD.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  return lines
    .map((line) =>
      line
        .map((cell, i) => cell.padEnd(widths[i]))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** A line of a table in Markdown. */
export function line(columns) {
  return `| ${columns.join(" | ")} |`;
}

/** The engine's section of RESULTS.md. */
export function results(rows, command) {
  const { version, name } = loadDriver();
  return [
    "# Bench results",
    "",
    `- ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC, Node ${process.version}, SQLite ${version} (${name})`,
    `- ${cpus().length} x ${cpus()[0].model}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()}`,
    `- \`${command}\`, durability "power"`,
    "",
    line(HEAD),
    line(HEAD.map(() => "---")),
    ...rows.map((row) => line(rowCells(row))),
    "",
    "Medians, with the least and the most of all rounds in brackets; the ratio is the median of the rounds' ratios. **Bare** is a plain loop that inserts the",
    "rows which Pawl wrote, already encoded, into the same schema, with the same driver, commit boundaries and sync settings; it is measured in",
    "turn with Pawl in the same process, and the rows of both are compared.",
    "",
    ...rows.map(({ what, note }) => `- *${what}*: ${note}.`),
    "",
  ].join("\n");
}

export function rowCells({ what, pawl, bare, ratio, target, isMet }) {
  return [what, pawl, bare, ratio, target, isMet === null ? "" : isMet ? "yes" : "no"];
}
