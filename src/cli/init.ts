import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { action, addCommand } from "./command.ts";
import { EXIT } from "./exit-codes.ts";

interface InitOptions {
  readonly script?: boolean;
}

const FILE = join("workflows", "hello.ts");
const SCRIPT = { name: "worker", command: "pawl worker workflows/*.ts" };

export function addInit(program: Command): void {
  addCommand(
    program,
    "init [folder]",
    "write a first workflow, workflows/hello.ts, into a project; overwrites nothing",
    ["pawl init", "pawl init my-project --script"],
  )
    .option("--script", `also add the script "${SCRIPT.name}" to package.json`)
    .action(
      action<InitOptions, [string | undefined]>(async ({ options, out }, folder = ".") => {
        assertFolder(folder);
        const isNew = writeHello(join(folder, FILE));
        const script = options.script === true ? addScript(join(folder, "package.json")) : null;
        const next = `${folder === "." ? "" : `cd ${folder} && `}npx pawl run ${FILE} hello '{"name":"Ada"}'`;
        if (out.isJson) out.json({ file: join(folder, FILE), created: isNew, script, next });
        else {
          out.print(
            isNew ? `Wrote ${join(folder, FILE)}.` : `${join(folder, FILE)} is there already and stays as it is.`,
          );
          if (script !== null)
            out.print(
              script
                ? `Added the script "${SCRIPT.name}" to package.json.`
                : `package.json has a script "${SCRIPT.name}" already; it stays as it is.`,
            );
          out.print(`\nRun it:\n  ${next}`);
          if (isUntracked(folder)) out.print("\nRuns are kept in .pawl/pawl.db. Add .pawl/ to .gitignore.");
        }
        return EXIT.ok;
      }),
    );
}

function assertFolder(folder: string): void {
  if (existsSync(folder)) return;
  throw new PawlError(
    "invalid_argument",
    `There is no folder ${folder}. Create it first, or run "pawl init" inside your project.`,
    { fields: { folder } },
  );
}

/** Creates the file, unless there is one: `wx` leaves no moment between looking and writing. */
function writeHello(path: string): boolean {
  mkdirSync(dirname(path), { recursive: true });
  try {
    writeFileSync(path, HELLO, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw new PawlError("invalid_argument", `${path} cannot be written: ${(error as Error).message}.`, {
      fields: { path },
      cause: error,
    });
  }
}

function addScript(path: string): boolean {
  const text = readPackage(path);
  const manifest = JSON.parse(text) as { scripts?: Record<string, string> };
  if (manifest.scripts !== undefined && Object.hasOwn(manifest.scripts, SCRIPT.name)) return false;
  const [, indent = "  "] = /^(\s+)"/m.exec(text) ?? [];
  const changed = { ...manifest, scripts: { ...manifest.scripts, [SCRIPT.name]: SCRIPT.command } };
  writeFileSync(path, `${JSON.stringify(changed, null, indent.replaceAll("\n", ""))}\n`);
  return true;
}

function readPackage(path: string): string {
  try {
    const text = readFileSync(path, "utf8");
    JSON.parse(text);
    return text;
  } catch (cause) {
    throw new PawlError(
      "invalid_argument",
      `${path} cannot be read, so no script was added to it. Create it with "npm init -y", then try again.`,
      { fields: { path }, cause },
    );
  }
}

function isUntracked(folder: string): boolean {
  const ignore = join(folder, ".gitignore");
  return existsSync(ignore) && !readFileSync(ignore, "utf8").includes(".pawl");
}

const HELLO = `import { workflow } from "pawl";

// Every finished step is recorded. Stop this run with Ctrl-C while it sleeps, start it again with the
// command that is printed then, and it goes on where it was: finished steps are not run again.
export const hello = workflow("hello", async (ctx, input: { name: string } = { name: "world" }) => {
  const greeting = await ctx.step("greet", () => \`Hello, \${input.name}!\`);

  await ctx.sleep("3s");

  const finishedAt = await ctx.step("finish", () => new Date().toISOString());
  return { greeting, finishedAt };
});
`;
