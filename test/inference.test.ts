import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

it("S3-3 input, step results and outputs infer end to end, and a wrong one does not compile", async () => {
  const tsc = new URL("../node_modules/typescript/bin/tsc", import.meta.url).pathname;
  const root = new URL("..", import.meta.url).pathname;
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, "-p", "test/types"], { cwd: root });
  expect(stdout).toBe("");
});
