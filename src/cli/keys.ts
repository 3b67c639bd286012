import { randomBytes } from "node:crypto";
import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { isKeyId } from "../base/sealed-text.ts";
import { type KeyUsage, keysInUse } from "../client/key-usage.ts";
import { readsPlain } from "../client/sealed-store.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { environmentOptions } from "./environment.ts";
import { EXIT } from "./exit-codes.ts";
import { countOf } from "./printable.ts";
import { table } from "./table.ts";

interface KeyLine {
  readonly key: string;
  readonly runs: number;
  readonly unfinished: number;
  readonly audits: number;
  readonly here: "seals" | "opens" | "missing";
}

export function addKeys(program: Command): void {
  const keys = addCommand(program, "keys", "which keys the store's values are sealed with, and which may go", [
    "pawl keys",
    "pawl keys new 2026-12",
  ]);
  keys.action(
    action<object, []>((call) =>
      withClient(call, async (pawl) => {
        report(call, await keysInUse(pawl.store), readsPlain(pawl.store));
        return EXIT.ok;
      }),
    ),
  );
  addCommand(keys, "new <id>", "print a new key, for PAWL_KEYS", ["pawl keys new 2026-12"]).action(
    action<object, [string]>(async ({ out }, id) => {
      if (!isKeyId(id))
        throw new PawlError(
          "invalid_argument",
          "A key's id is made of up to 32 letters, digits, - and _, such as 2026-12. Give another one.",
          { fields: { id } },
        );
      const key = randomBytes(32).toString("base64");
      if (out.isJson) out.json({ id, key });
      else out.print(`${id}:${key}`);
      return EXIT.ok;
    }),
  );
}

function report({ out }: Call<object>, { keys, plainRuns }: KeyUsage, isPlainRead: boolean): void {
  const here = environmentOptions().encryption?.keys.map(({ id }) => id) ?? [];
  const used = new Map(keys.map((use) => [use.key, use]));
  const lines = [...new Set([...here, ...used.keys()])].map((key): KeyLine => {
    const { runs, unfinished, audits } = used.get(key) ?? { runs: 0, unfinished: 0, audits: 0 };
    return {
      key,
      runs,
      unfinished,
      audits,
      here: !here.includes(key) ? "missing" : key === here[0] ? "seals" : "opens",
    };
  });
  if (out.isJson) return out.json({ keys: lines, plainRuns, isPlainRead });
  if (lines.length === 0) out.note("Nothing in this store is sealed, and PAWL_KEYS is not set.");
  else {
    const rows = lines.map((line) => [
      line.key,
      ...[line.runs, line.unfinished, line.audits].map((count) => String(count)),
      line.here,
    ]);
    const header = ["KEY", "RUNS", "UNFINISHED", "AUDITS", "HERE"];
    for (const line of table([header, ...rows], { right: [1, 2, 3], width: out.width, header: out.color.dim }))
      out.print(line);
  }
  for (const text of advice(lines, plainRuns, isPlainRead)) out.note(text);
}

function advice(lines: readonly KeyLine[], plainRuns: number, isPlainRead: boolean): string[] {
  const idle = lines.filter(({ runs, here }) => here === "opens" && runs === 0);
  const [free, audited] = [idle.filter(({ audits }) => audits === 0), idle.filter(({ audits }) => audits > 0)];
  const names = (keys: readonly KeyLine[]) => keys.map(({ key }) => key).join(", ");
  const next = plainRuns > 0 ? "Once they have ended and gone, or were forked," : "Nothing in the runs needs that:";
  return [
    ...(free.length > 0 ? [`Nothing needs ${names(free)} any more: it may be taken out of the list.`] : []),
    ...(audited.length > 0
      ? [
          `No run needs ${names(audited)} any more. Without it, details of the audit log stay sealed; who did what, and the check of the log, do not need it.`,
        ]
      : []),
    ...(plainRuns > 0 ? [`${countOf(plainRuns, "run has", "runs have")} values that are not sealed.`] : []),
    ...(isPlainRead
      ? [
          `Values that are not sealed are read as well, so whoever can write to the database can put some in. ${next} set \`encryption.plain\` to "refuse" (PAWL_PLAIN=refuse) in all processes.`,
        ]
      : []),
  ];
}
