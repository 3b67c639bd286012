// The package as a stranger gets it: packed, installed into an empty project, the README's first block pasted, run, killed and run again.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Pawl } from "../src/index.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("..", import.meta.url));
let project = "";

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "pawl-package-"));
  // The build has just run; packing must not replace dist under the other tests.
  const { stdout } = await run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", project], {
    cwd: root,
  });
  const [packed] = JSON.parse(stdout) as [{ filename: string }];
  await writeFile(join(project, "package.json"), '{ "name": "stranger", "private": true }\n');
  await run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", join(project, packed.filename)], {
    cwd: project,
  });
}, 120_000);

afterAll(async () => {
  await rm(project, { recursive: true, force: true });
});

async function readmeExample(): Promise<string> {
  const readme = await readFile(join(root, "README.md"), "utf8");
  return /```js\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
}

it("S3-1 S3-29 I1 the README's first block, pasted, killed and run again, does what the README says", async () => {
  // The reader has ten seconds to kill it; the test needs no more than a moment.
  await writeFile(join(project, "checkout.mjs"), (await readmeExample()).replace('"10s"', '"3s"'));
  const first = spawn(process.execPath, ["checkout.mjs"], { cwd: project, stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: first.stdout });
  const [charged] = (await once(lines, "line")) as [string];
  expect(charged).toMatch(/^charging 4200 cents/);
  await sleepIsRecorded(join(project, ".pawl", "pawl.db"));
  first.kill("SIGKILL");
  await once(first, "exit");
  const second = await run(process.execPath, ["checkout.mjs"], { cwd: project });
  expect(second.stdout).not.toMatch(/charging/);
  expect(second.stdout).toMatch(/mail to ada@example.com: paid with payment-1/);
  const third = await run(process.execPath, ["checkout.mjs"], { cwd: project });
  expect(third.stdout).not.toMatch(/charging|mail to/);
  expect(third.stdout).toMatch(/order: 17/);
}, 60_000);

it("a CommonJS project can use it, by require and by import()", async () => {
  const code = `
    const { Pawl, workflow } = require("pawl");
    const hello = workflow("hello", async (ctx) => ctx.step("greet", () => "hello"));
    (async () => {
      const again = await import("pawl");
      if (again.Pawl !== Pawl) throw new Error("two copies");
      const pawl = await Pawl.open("memory:", { workflows: [hello] });
      console.log(await pawl.run(hello));
      await pawl.close();
    })();`;
  await writeFile(join(project, "hello.cjs"), code);
  const { stdout } = await run(process.execPath, ["--no-warnings", "hello.cjs"], { cwd: project });
  expect(stdout).toBe("hello\n");
});

it("the installed command runs, and knows the package's store cases", async () => {
  const { stdout } = await run("npx", ["--no-install", "pawl", "--version"], { cwd: project });
  expect(stdout).toMatch(/^\d+\.\d+\.\d+/);
  const code = 'import { storeCases } from "pawl/testing"; console.log(storeCases.length > 50);';
  const cases = await run(process.execPath, ["--input-type=module", "-e", code], { cwd: project });
  expect(cases.stdout).toBe("true\n");
});

it("the guards are there, by their own name", async () => {
  const code = 'import { writeFile } from "pawl/guards"; console.log(writeFile("a", "b").idempotent);';
  const guards = await run(process.execPath, ["--input-type=module", "-e", code], { cwd: project });
  expect(guards.stdout).toBe("natural\n");
});

it("the bridge to the AI SDK is there, and asks for the SDK where it is not installed", async () => {
  const code =
    'import("pawl/ai").then((all) => console.log(all.DurableAgent.name), ({ message }) => console.log(message));';
  const bridge = await run(process.execPath, ["--input-type=module", "-e", code], { cwd: project });
  expect(bridge.stdout).toContain("Cannot find package 'ai'");
});

/** Resolves when the charge and the sleep that follows it are recorded. */
async function sleepIsRecorded(store: string): Promise<void> {
  const pawl = await Pawl.open(store);
  const { runs } = await pawl.list();
  for await (const { type } of pawl.get(runs[0]?.id ?? "").events()) if (type === "timer.set") break;
  await pawl.close();
}
