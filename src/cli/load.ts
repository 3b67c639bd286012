import { existsSync, statSync } from "node:fs";
import * as nodeModule from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { PawlError } from "../base/errors.ts";
import { compareVersions, parseVersion } from "../base/semver.ts";
import type { Notifier } from "../core/notification.ts";
import type { Workflow } from "../core/workflow.ts";
import { ownFile } from "../stores/own-file.ts";
import { placeOf, relativeToHere, syntaxPlace } from "./code-place.ts";
import * as hooks from "./ts-hook.ts";

let isRegistered = false;

/** What a process works with. */
interface Loaded {
  readonly workflows: readonly Workflow[];
  readonly notifiers: readonly Notifier[];
}

/** Loads workflow files, TypeScript or JavaScript, and returns every workflow they export. */
export async function loadWorkflows(files: readonly string[]): Promise<readonly Workflow[]> {
  return (await loadWork(files)).workflows;
}

/** The same, with what the files export as `notifiers`. */
export async function loadWork(files: readonly string[]): Promise<Loaded> {
  const found = new Set<Workflow>();
  const notifiers = new Set<Notifier>();
  for (const file of files) {
    const exported: { readonly notifiers?: unknown } = await loadModule(file);
    const workflows = collectWorkflows(exported);
    if (workflows.length === 0) throw nothingExported(file);
    for (const one of workflows) found.add(one);
    for (const one of Array.isArray(exported.notifiers) ? (exported.notifiers as Notifier[]) : []) notifiers.add(one);
  }
  return { workflows: [...found], notifiers: [...notifiers] };
}

/** From here on, this process can import TypeScript. */
export function installHooks(): void {
  if (isRegistered) return;
  isRegistered = true;
  // Stack traces and the lines that Pawl names then are those of the TypeScript file.
  process.setSourceMapsEnabled(true);
  // Node 20 has only the older way, in a thread; newer ones warn about that.
  if (typeof nodeModule.registerHooks === "function") nodeModule.registerHooks(hooks);
  else nodeModule.register(pathToFileURL(ownFile("#ts-hook")));
}

/**
 * Loads one file, TypeScript or JavaScript, and returns what it exports. Another `instance` of a file that was loaded already has variables of
 * its own.
 */
export async function loadModule(file: string, instance: number = 0): Promise<object> {
  installHooks();
  const path = resolve(file);
  if (!existsSync(path)) {
    throw badFile(file, `There is no file ${file}. Give the path of a .ts or .js file that exports workflows.`);
  }
  if (statSync(path).isDirectory()) {
    throw badFile(
      file,
      `${file} is a folder. Name the workflow files in it, for example ${file.replace(/\/$/, "")}/*.ts.`,
    );
  }
  if (!/\.[mc]?[jt]s$/.test(path)) {
    throw badFile(file, `${file} is neither TypeScript nor JavaScript. Give a .ts, .mts, .js or .mjs file.`);
  }
  try {
    return await import(`${pathToFileURL(path).href}${instance === 0 ? "" : `?pawl-instance=${instance}`}`);
  } catch (error) {
    throw loadFailure(file, error);
  }
}

/** The workflows among a module's exports: by themselves, or in arrays and plain objects. */
export function collectWorkflows(exported: unknown, depth = 0): Workflow[] {
  if (isWorkflow(exported)) return [exported];
  if (typeof exported !== "object" || exported === null || depth > 2) return [];
  const isContainer = depth === 0 || Array.isArray(exported) || Object.getPrototypeOf(exported) === Object.prototype;
  if (!isContainer) return [];
  return [...new Set(Object.values(exported).flatMap((value) => collectWorkflows(value, depth + 1)))];
}

/** The newest version of that name. */
export function pickWorkflow(workflows: readonly Workflow[], name: string, file: string): Workflow {
  const [newest] = workflows
    .filter((one) => one.name === name)
    .sort((a, b) => compareVersions(parseVersion(b.version), parseVersion(a.version)));
  if (newest !== undefined) return newest;
  const names = [...new Set(workflows.map((one) => one.name))].join(", ");
  const message = `${file} has no workflow ${JSON.stringify(name)}. It has: ${names}.`;
  throw new PawlError("unknown_workflow", message, { fields: { workflow: name, file } });
}

// By shape, not by class: a workflow made by another copy of Pawl is one, too.
function isWorkflow(value: unknown): value is Workflow {
  if (typeof value !== "object" || value === null) return false;
  const { name, version, definition } = value as Partial<Workflow>;
  return typeof name === "string" && typeof version === "string" && typeof definition?.handler === "function";
}

function nothingExported(file: string): PawlError {
  return badFile(
    file,
    `${file} exports no workflow. Export at least one: export const hello = workflow("hello", async (ctx, input) => { … });`,
  );
}

function loadFailure(file: string, error: unknown): PawlError {
  const { code, message } =
    error instanceof Error ? (error as NodeJS.ErrnoException) : { code: undefined, message: String(error) };
  const text = relativeToHere(message).replace(/\.$/, "");
  if (code === hooks.SYNTAX_ERROR) return badFile(file, `${text}. Correct the file and try again.`, error);
  if (error instanceof SyntaxError) {
    const place = placeOf(error) ?? syntaxPlace(resolve(file)) ?? file;
    return badFile(file, `${place}: ${text}. Correct the file and try again.`, error);
  }
  if (code === "ERR_MODULE_NOT_FOUND") {
    return badFile(file, `${file} cannot be loaded: ${text}. Install what is missing, or correct the import.`, error);
  }
  return badFile(file, `${file} failed while it was loaded: ${text} (at ${placeOf(error) ?? file}).`, error);
}

function badFile(file: string, message: string, cause?: unknown): PawlError {
  return new PawlError("invalid_argument", message, { fields: { file }, cause });
}
