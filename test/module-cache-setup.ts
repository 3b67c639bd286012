// Transformed modules are kept from run to run (vitest.config.ts), also those of files that have changed since. Before there are too many, all go.
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

/** About ten times what all tests need. */
const MOST_FILES = 10_000;

export default function setup({ vitest }: TestProject): void {
  const folder = vitest.config.experimental.fsModuleCachePath;
  if (folder === undefined) return;
  const files = readdirSync(folder, { withFileTypes: true }).filter((one) => one.isFile());
  if (files.length > MOST_FILES) for (const { name } of files) rmSync(join(folder, name), { force: true });
}
