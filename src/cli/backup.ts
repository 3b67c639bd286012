import { existsSync, statSync } from "node:fs";
import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";

export function addBackup(program: Command): void {
  addCommand(program, "backup <file>", "write a consistent copy of the store, while it is in use", [
    "pawl backup backups/pawl-2026-11-15.db",
  ]).action(
    action<object, [string]>((call, file) =>
      withClient(call, async ({ store }) => {
        const { out } = call;
        if (store.backup === undefined) {
          throw new PawlError(
            "invalid_argument",
            store.kind === "postgres"
              ? "Pawl does not copy a PostgreSQL store. Use the tools of the database: pg_dump for a copy of its schema, or continuous archiving. docs/guides/postgres.md tells more."
              : `A store of kind "${store.kind}" is not copied by Pawl. Use the tools of its database.`,
            { fields: { kind: store.kind } },
          );
        }
        if (existsSync(file))
          throw new PawlError(
            "invalid_argument",
            `${file} exists, and a backup overwrites nothing. Give another name.`,
            { fields: { file } },
          );
        const progress = out.progress(`Copying to ${file}`);
        await store.backup(file).finally(progress.done);
        const { size } = statSync(file);
        if (out.isJson) out.json({ file, bytes: size });
        else out.print(`Copied to ${file} (${(size / 1e6).toFixed(1)} MB). Check it with: pawl doctor --store ${file}`);
        return EXIT.ok;
      }),
    ),
  );
}
