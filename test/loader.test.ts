import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { CACHE_VARIABLE } from "../src/cli/ts-hook.ts";
import { withoutColdStart } from "./cold-start.ts";
import { begin, hosted, json, project } from "./fixtures/cli/command.ts";

// Commands compile their files themselves.
beforeAll(() => void vi.stubEnv(CACHE_VARIABLE, ""));
afterAll(() => void vi.unstubAllEnvs());

const MODULES = { "a CommonJS project": "{}", "a project of ES modules": '{ "type": "module" }' };
const WORKFLOW = `import { workflow } from "pawl";\n`;

describe.each(Object.entries(MODULES))("workflow files in %s", (_, manifest) => {
  it("may use enums, parameter properties and types, and import each other in every form", async () => {
    const folder = project({
      "package.json": manifest,
      "lib/color.ts": `export enum Color { Red = "red" }\nexport interface Shape { color: Color }\n`,
      "lib/index.ts": `export const size: number = 2;\n`,
      "lib/plain.mjs": `export const plain = 3;\n`,
      "flow.ts": `${WORKFLOW}
        import { Color, Shape } from "./lib/color.js";
        import { Color as Same } from "./lib/color.ts";
        import { Color as Also } from "./lib/color";
        import { size } from "./lib";
        import { plain } from "./lib/plain.mjs";
        class Point { constructor(readonly x: number) {} }
        const shape: Shape = { color: Color.Red };
        export const flow = workflow("flow", async () => [shape.color, Color === Same && Same === Also, size, plain, new Point(1).x]);
      `,
    });
    expect(await json(folder, "run", "flow.ts", "flow")).toMatchObject({ output: ["red", true, 2, 3, 1] });
  });

  it("get the command's own copy of pawl, also where another one is installed", async () => {
    const folder = project({
      "package.json": manifest,
      "node_modules/pawl/package.json": '{ "name": "pawl", "version": "9.9.9", "exports": "./index.mjs" }',
      "node_modules/pawl/index.mjs": 'throw new Error("the other copy");\n',
      "lib/error.ts": `export { PawlError } from "pawl";\n`,
      "flow.ts": `${WORKFLOW}
        import { PawlError } from "./lib/error.ts";
        export const flow = workflow("flow", async (ctx) => {
          try { ctx.note("x"); await ctx.step("a#b", () => 1); } catch (error) { return error instanceof PawlError; }
        });
      `,
    });
    expect(await json(folder, "run", "flow.ts", "flow")).toMatchObject({ output: true });
  });

  it("may be JavaScript", async () => {
    const folder = project({
      "package.json": manifest,
      "flow.mjs": `${WORKFLOW}export default workflow("flow", async () => 1);\n`,
    });
    expect(await json(folder, "run", "flow.mjs", "flow")).toMatchObject({ output: 1 });
  });

  it.each([
    ["a syntax error", "export const a: number = 1;\n\nconst b: = 2;\n", /flow\.ts:3: Unexpected token/],
    [
      "one that only the engine sees",
      "interface A {\n  a: 1;\n}\nconst a = 1;\nconst a = 2;\n",
      /flow\.ts:5: Identifier 'a' has already been declared/,
    ],
    [
      "a missing export",
      'import { nope } from "pawl";\nconsole.log(nope);\n',
      /flow\.ts:1: .*does not provide an export named 'nope'/,
    ],
    ["a missing package", 'import "not-installed";\n', /Cannot find package 'not-installed'.*Install what is missing/],
    [
      "an error at load",
      "interface A {\n  a: 1;\n}\nthrow new TypeError('boom');\n",
      /failed while it was loaded: boom \(at flow\.ts:4\)/,
    ],
    [
      "no workflow",
      "export const a = 1;\n",
      /flow\.ts exports no workflow\. Export at least one: export const hello = workflow\(/,
    ],
  ])("with %s are refused, with file and line and no stack", async (_what, text, message) => {
    const folder = project({ "package.json": manifest, "flow.ts": text });
    const { code, stdout, stderr } = await hosted(folder, ["run", "flow.ts", "flow"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });
});

describe("what a file exports", () => {
  it("is every workflow: by name, as default, in arrays and objects, each once", async () => {
    const folder = project({
      "flow.ts": `${WORKFLOW}
        export const one = workflow("one", async () => 1);
        export const more = [workflow("two", async () => 2), { three: workflow("three", async () => 3) }];
        export const notOne = { name: "four" };
        export default one;
      `,
    });
    const { stderr } = await hosted(folder, ["run", "flow.ts", "four"]);
    expect(stderr).toMatch(/It has: (one, two, three|two, three, one)\./);
    expect(await json(folder, "run", "flow.ts", "three")).toMatchObject({ output: 3 });
  });

  it("may be several versions: a new run takes the newest", async () => {
    const folder = project({
      "flow.ts": `${WORKFLOW}
        export const old = workflow({ name: "flow", version: "1.9.0" }, async () => "old");
        export const now = workflow({ name: "flow", version: "1.10.0" }, async () => "new");
      `,
    });
    expect(await json(folder, "run", "flow.ts", "flow")).toMatchObject({ output: "new", version: "1.10.0" });
  });

  it("is refused if it is there twice", async () => {
    const text = `${WORKFLOW}export const flow = workflow("flow", async () => 1);\n`;
    const folder = project({ "a.ts": text, "b.ts": text });
    expect(await hosted(folder, ["worker", "a.ts", "b.ts"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"flow"'),
    });
  });

  it.each([
    ["nowhere.ts", /There is no file nowhere\.ts/],
    ["lib", /lib is a folder.*lib\/\*\.ts/],
    ["data.json", /neither TypeScript nor JavaScript/],
  ])("is asked of a file: %s is refused", async (file, message) => {
    const folder = project({ "lib/a.ts": "", "data.json": "{}" });
    expect(await hosted(folder, ["worker", file])).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
  });
});

it("lines in a TypeScript file are those that the user sees", async () => {
  withoutColdStart("its result is a stack, with lines of the engine in it");
  const folder = project({
    "flow.ts": `${WORKFLOW}interface Long {\n  a: 1;\n}\nexport const flow = workflow("flow", async (ctx) => {\n  return new Error("x").stack;\n});\n`,
  });
  expect(await json(folder, "run", "flow.ts", "flow")).toMatchObject({
    output: expect.stringMatching(/flow\.ts:6:10/),
  });
});

it("a workflow's own timers do not keep the command alive", async () => {
  const folder = project({
    "flow.ts": `${WORKFLOW}setInterval(() => {}, 1000);\nexport const flow = workflow("flow", async () => 1);\n`,
  });
  expect((await begin(folder, ["run", "flow.ts", "flow"]).ended).code).toBe(0);
});
