import type { Command } from "commander";
import type { AuditCheck } from "../client/audit.ts";
import type { AuditRecord } from "../core/audit.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { wholeNumber } from "./input.ts";
import { clean, countOf } from "./printable.ts";
import { type Cell, table } from "./table.ts";
import { timeOf } from "./times.ts";

interface AuditOptions {
  readonly after: string;
  readonly limit: string;
  readonly check?: boolean;
}

export function addAudit(program: Command): void {
  addCommand(program, "audit", "show who has done what to the store, and check that nobody has changed that log", [
    "pawl audit --after 100",
    "pawl audit --check",
    "pawl audit --json --limit 1000 > audit.json",
  ])
    .option("--after <n>", "only records behind this number", "0")
    .option("--limit <n>", "how many", "50")
    .option("--check", "read the whole log and say whether a record was edited or is missing")
    .action(
      action<AuditOptions, []>((call) =>
        withClient(call, async (pawl) => {
          const { after, limit, check } = call.options;
          if (check === true) return checkAll(call, await pawl.operations.checkAudit());
          const query = { after: wholeNumber(after, "--after", 0), limit: wholeNumber(limit, "--limit", 1) };
          const page = await pawl.operations.audit(query);
          if (call.out.isJson) call.out.json(page);
          else if (page.records.length === 0) call.out.note("No records.");
          else print(call, page.records);
          return EXIT.ok;
        }),
      ),
    );
}

function checkAll({ out }: Call<AuditOptions>, found: AuditCheck): ExitCode {
  const { records, fault } = found;
  if (out.isJson) out.json(found);
  else if (fault === null) out.print(`${countOf(records, "record")}, all as they were written.`);
  else
    out.print(
      `${out.color.red("fail")}  Record ${fault.n} ${fault.what === "edited" ? "was edited" : "is missing"}: the log is not as it was written from there on. Compare it with a backup.`,
    );
  return fault === null ? EXIT.ok : EXIT.failed;
}

function print({ out }: Call<AuditOptions>, records: readonly AuditRecord[]): void {
  const header: Cell[] = ["N", "AT", "WHO", "WHAT", "TO", "OUTCOME", "FROM"];
  const rows = records.map((one): Cell[] => [
    String(one.n),
    timeOf(one.at),
    clean(one.who),
    clean(one.action),
    clean(one.subject ?? ""),
    one.outcome,
    clean(one.from ?? ""),
  ]);
  for (const line of table([header, ...rows], { right: [0], width: out.width, header: out.color.dim })) out.print(line);
}
