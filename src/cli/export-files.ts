// Files that `pawl export` has written, one by one or in a folder.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf, PawlError } from "../base/errors.ts";
import type { ExportedRun } from "../client/export.ts";
import { readExports } from "../client/replay-packet.ts";

export function listExports(path: string): string[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined)
    throw badFile(
      path,
      `There is no file or folder ${path}. Give an export, or a folder of them; \`pawl export RUN --out FILE\` writes one.`,
    );
  if (!stats.isDirectory()) return [path];
  const files = readdirSync(path, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".json"));
  if (files.length === 0)
    throw badFile(
      path,
      `There is no .json file in ${path}. \`pawl export RUN --out ${join(path, "RUN.json")}\` writes one.`,
    );
  return files.sort().map((name) => join(path, name));
}

/** The runs of an export: one, or with a packet those below it as well. */
export function readExportFile(file: string): ExportedRun[] {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw badFile(
      file,
      `${file} is not JSON: it is damaged or no export. Export the run again with \`pawl export RUN --out ${file}\`.`,
      cause,
    );
  }
  return named(file, () => readExports(value));
}

/** Says which file an error is about. */
function named<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw badFile(file, `${file}: ${messageOf(cause)}`, cause);
  }
}

export function badFile(file: string, message: string, cause?: unknown): PawlError {
  return new PawlError("invalid_argument", message, { fields: { file }, cause });
}
