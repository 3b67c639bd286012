// Documentation that runs: every code block of the guides is compiled and executed, and keeps what its comments promise.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { hasCode } from "../src/base/errors.ts";
import { blocksOf, compilerConfig, extractGuide, withChecks } from "./fixtures/docs/guide.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const GUIDES = readdirSync(join(ROOT, "docs", "guides")).map((name) => `docs/guides/${name}`);
const guides = new Map(GUIDES.map((path) => [path, extractGuide(path)]));

describe("the runner of code blocks", () => {
  it("finds blocks, their files and whether they stand alone", () => {
    const text = ["```ts", "// lib/a.ts", "1;", "```", "", "```sh", "x", "```", "```js standalone", "2;", "```"].join("\n");
    expect(blocksOf(text)).toEqual([
      { language: "ts", line: 2, isStandalone: false, file: "lib/a.ts", code: "// lib/a.ts\n1;\n" },
      { language: "js", line: 10, isStandalone: true, file: null, code: "2;\n" },
    ]);
  });

  it("turns promises in comments into checks", () => {
    const { code, count } = withChecks("console.log(a, b); // => [1]\nawait c(); // => 2\nawait d(); // throws closed\n// => no");
    expect(count).toBe(3);
    expect(code).toBe('__equal(a, b, [1]);\n__equal(await c(), 2);\nawait __throws(async () => d(), "closed");\n// => no');
  });
});

describe("guides", () => {
  it("compile", () => {
    const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    const { stdout, status } = spawnSync(process.execPath, [tsc, "-p", compilerConfig()], { encoding: "utf8" });
    expect(stdout).toBe("");
    expect(status).toBe(0);
  });

  it.each([...guides])("%s does what it says", async (_path, guide) => {
    const folder = inTempFolder();
    for (const { path, checks } of guide.modules) {
      const reached = await runModule(path);
      expect({ folder: reached.folder, checks: reached.checks }).toEqual({ folder, checks });
    }
  });
});

/** Moves this process into a folder of its own until the test is over. */
function inTempFolder(): string {
  const before = process.cwd();
  const folder = mkdtempSync(join(tmpdir(), "pawl-docs-"));
  process.chdir(folder);
  onTestFinished(() => {
    process.chdir(before);
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  });
  return process.cwd();
}

async function runModule(path: string): Promise<{ readonly checks: number; readonly folder: string }> {
  let checks = 0;
  Object.assign(globalThis, {
    __equal(actual: unknown, expected: unknown) {
      checks += 1;
      expect(actual).toEqual(expected);
    },
    async __throws(run: () => Promise<unknown>, code: string) {
      checks += 1;
      const error = await run().then(
        (value) => new Error(`resolved with ${JSON.stringify(value)}`),
        (thrown: unknown) => thrown,
      );
      expect(hasCode(error, code as never), String(error)).toBe(true);
    },
  });
  await import(path);
  return { checks, folder: process.cwd() };
}
