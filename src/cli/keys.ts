import { randomBytes } from "node:crypto";
import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { isKeyId } from "../base/sealed-text.ts";
import { type KeyUsage, keysInUse } from "../client/key-usage.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { environmentOptions } from "./environment.ts";
import { EXIT } from "./exit-codes.ts";
import { table } from "./table.ts";

interface KeyLine {
  readonly key: string;
  readonly runs: number;
  readonly unfinished: number;
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
        report(call, await keysInUse(pawl.store));
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

function report({ out }: Call<object>, { keys, plainRuns }: KeyUsage): void {
  const here = environmentOptions().encryption?.keys.map(({ id }) => id) ?? [];
  const used = new Map(keys.map((use) => [use.key, use]));
  const lines = [...new Set([...here, ...used.keys()])].map((key): KeyLine => {
    const { runs, unfinished } = used.get(key) ?? { runs: 0, unfinished: 0 };
    return { key, runs, unfinished, here: !here.includes(key) ? "missing" : key === here[0] ? "seals" : "opens" };
  });
  if (out.isJson) return out.json({ keys: lines, plainRuns });
  if (lines.length === 0) out.note("Nothing in this store is sealed, and PAWL_KEYS is not set.");
  else {
    const rows = lines.map(({ key, runs, unfinished, here }) => [key, String(runs), String(unfinished), here]);
    const header = ["KEY", "RUNS", "UNFINISHED", "HERE"];
    for (const line of table([header, ...rows], { right: [1, 2], width: out.width, header: out.color.dim }))
      out.print(line);
  }
  const idle = lines.filter(({ runs, here }) => here === "opens" && runs === 0).map(({ key }) => key);
  if (idle.length > 0) out.note(`No run needs ${idle.join(", ")} any more: it may be taken out of the list.`);
  if (plainRuns > 0) out.note(`${plainRuns} runs have values that are not sealed.`);
}
