// Module hooks for workflow files
// Node 20 has no type stripping, and where Node has it, it refuses enums and TypeScript in CommonJS projects' ESM syntax. So one way
// for all: these hooks turn TypeScript into an ES module, whatever the project's package.json says. Both functions are synchronous and
// hand on whatever `next` gives, so that they serve `module.registerHooks` and, on Node 20, the thread of `module.register`.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

interface ResolveContext {
  readonly parentURL?: string | undefined;
}

interface Transformer {
  transformSync(source: string, options: object): { readonly code: string; readonly map?: string };
}

export interface LoadedModule {
  readonly format: "module";
  readonly source: string;
  readonly shortCircuit: true;
}

/** The code of the error for a file that cannot be parsed. Its message begins with the file and the line. */
export const SYNTAX_ERROR = "PAWL_SYNTAX";

// Imports that only name types go even without the word `type`, as they do for the compiler by default.
const TRANSFORM = {
  mode: "transform",
  sourceMap: true,
  transform: { verbatimModuleSyntax: false, nativeClassProperties: true },
};

const TYPESCRIPT = /\.m?ts$/;
const require = createRequire(import.meta.url);
let transformer: Transformer | null = null;

/** `pawl` is always the command's own copy, so that the project's copy, or none, makes no difference. */
export function resolve<C extends ResolveContext, T>(
  specifier: string,
  context: C,
  next: (specifier: string, context: C) => T,
): T {
  if (specifier === "pawl" || specifier.startsWith("pawl/")) {
    // From a file of this package, its own name leads to its own exports.
    return next(specifier, { ...context, parentURL: import.meta.url });
  }
  const found = typeScriptFor(specifier, context.parentURL) ?? specifier;
  return next(`${found}${instanceOf(specifier, context.parentURL)}`, context);
}

/** A module that is loaded once more brings what it imports by a relative path along: nothing of it remembers anything. */
function instanceOf(specifier: string, parent: string | undefined): string {
  if (parent === undefined || !/^\.{1,2}\//.test(specifier)) return "";
  return /\?pawl-instance=\d+$/.exec(parent)?.[0] ?? "";
}

export function load<C, T>(url: string, context: C, next: (url: string, context: C) => T): T | LoadedModule {
  if (!url.startsWith("file:") || !isTypeScript(url)) return next(url, context);
  const path = fileURLToPath(url);
  return { format: "module", source: toJavaScript(readFileSync(path, "utf8"), path), shortCircuit: true };
}

/** The TypeScript file that a relative import means: `./b.js` and `./b` are `b.ts` if there is one, as for the compiler. */
function typeScriptFor(specifier: string, parent: string | undefined): string | null {
  if (parent === undefined || !isTypeScript(parent) || !/^\.{1,2}\//.test(specifier)) return null;
  const path = fileURLToPath(new URL(specifier, parent));
  const found = candidates(path).find((candidate) => statSync(candidate, { throwIfNoEntry: false })?.isFile());
  return found === undefined ? null : pathToFileURL(found).href;
}

function candidates(path: string): string[] {
  if (/\.m?js$/.test(path)) return [path.replace(/js$/, "ts")];
  return [path, `${path}.ts`, `${path}.mts`, `${path}/index.ts`];
}

function isTypeScript(url: string): boolean {
  return TYPESCRIPT.test(new URL(url).pathname);
}

/** A folder in which processes that load the same files keep what became of them: the parser alone takes longer to load than Pawl. */
export const CACHE_VARIABLE = "PAWL_TS_CACHE";

function toJavaScript(source: string, path: string): string {
  const folder = process.env[CACHE_VARIABLE];
  if (folder === undefined || folder === "") return compile(source, path);
  const kept = join(folder, `${createHash("sha256").update(path).update("\0").update(source).digest("hex")}.mjs`);
  if (existsSync(kept)) return readFileSync(kept, "utf8");
  const code = compile(source, path);
  // Renamed into its place, so that nobody reads half of it.
  const draft = `${kept}.${process.pid}`;
  writeFileSync(draft, code);
  renameSync(draft, kept);
  return code;
}

/** The JavaScript of a TypeScript source, with its map: types, enums, namespaces and unused imports of types go. */
function compile(source: string, path: string): string {
  const { code, map } = transform(source, path);
  return `${code}\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(map).toString("base64")}\n`;
}

export function transform(source: string, path: string): { readonly code: string; readonly map: string } {
  transformer ??= require("amaro") as Transformer;
  try {
    const { code, map = "{}" } = transformer.transformSync(source, { ...TRANSFORM, filename: path });
    return { code, map };
  } catch (thrown) {
    throw syntaxError(path, thrown);
  }
}

function syntaxError(path: string, thrown: unknown): Error {
  const report = typeof thrown === "string" ? thrown : String((thrown as { message?: unknown }).message);
  const [, first = "it cannot be parsed"] = /^\s*[x×]\s*(.+)$/m.exec(report) ?? [];
  // The parser goes on with a list of all it would have liked better.
  const message = first.replace(/\. Expected .*,.*$/, "").trim();
  return Object.assign(new SyntaxError(`${path}:${lineOf(report)}: ${message}`), { code: SYNTAX_ERROR });
}

// The report is a drawing: numbered source lines, and under the one at fault a line with a caret.
function lineOf(report: string): number {
  const [, underCaret] = /^\s*(\d+) [|│].*\n\s*[:·].*[\^─┬]/m.exec(report) ?? [];
  const [, inHeader] = /\[(\d+):\d+\]/.exec(report) ?? [];
  return Number(underCaret ?? inHeader ?? 1);
}
