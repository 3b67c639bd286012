// The mutants of `npm run mutants` change the sources by exact texts: these must not rot while nobody runs them.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const SCRIPT = fileURLToPath(new URL("../scripts/mutants.mjs", import.meta.url));

it("every mutant fits the sources exactly once, and names tests that are there", () => {
  const { stdout, stderr, status } = spawnSync(process.execPath, [SCRIPT, "--check"], { encoding: "utf8" });
  expect(stderr).toBe("");
  expect(status).toBe(0);
  const [, mutants, rules] = /^(\d+) mutants of (\d+) rules fit the sources/.exec(stdout) ?? [];
  expect(Number(mutants)).toBeGreaterThanOrEqual(460);
  expect(Number(rules)).toBeGreaterThanOrEqual(175);
});
