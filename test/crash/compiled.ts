// The examples as JavaScript, compiled once per test process: starting hundreds of processes with a TypeScript loader takes too long.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "../../src/cli/ts-hook.ts";

const SOURCE = fileURLToPath(new URL("../../examples", import.meta.url));
// Inside the package, so that "pawl" means this one.
const TARGET = fileURLToPath(new URL(`../../.cache/examples-${process.pid}`, import.meta.url));

let isCompiled = false;

/** The path of a compiled example file, named as in `examples`. */
export function compiled(file: string): string {
  if (!isCompiled) compileAll();
  isCompiled = true;
  return join(TARGET, file.replace(/ts$/, "js"));
}

export function removeCompiled(): void {
  rmSync(TARGET, { recursive: true, force: true });
  isCompiled = false;
}

function compileAll(): void {
  for (const file of readdirSync(SOURCE, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".ts")) continue;
    const source = join(SOURCE, file);
    const { code } = transform(readFileSync(source, "utf8"), source);
    const target = join(TARGET, file.replace(/ts$/, "js"));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, code.replace(/(from "\.[^"]*)\.ts"/g, '$1.js"'));
  }
}
