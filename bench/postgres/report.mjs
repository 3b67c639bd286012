import { cpus, totalmem, type } from "node:os";
import { HEAD, line, rowCells } from "../report.mjs";

/** The section of RESULTS.md. */
export function section(rows, source) {
  return [
    "# Pawl on PostgreSQL",
    "",
    `- ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC, Node ${process.version}, PostgreSQL from ${source}, with syncs, on the same machine`,
    `- ${cpus().length} x ${cpus()[0].model}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()}`,
    "- `npm run bench:pg`",
    "",
    line(HEAD),
    line(HEAD.map(() => "---")),
    ...rows.map((row) => line(rowCells(row))),
    "",
    "Medians, with the least and the most of all rounds in brackets. **Bare** is what the row is compared with.",
    "",
    ...rows.map(({ what, note }) => `- *${what}*: ${note}.`),
    "",
  ].join("\n");
}
