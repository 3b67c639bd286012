import { readFile } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { PawlError, readProperty } from "../base/errors.ts";
import { parseJson } from "../base/json-text.ts";
import { type Playbook, readPlaybook } from "../flows/playbook.ts";

export interface PlaybookFile {
  readonly playbook: Playbook;
  readonly path: string;
}

/** Reads a playbook. Throws `invalid_playbook` that says what is wrong with it, and where. */
export async function loadPlaybook(file: string): Promise<PlaybookFile> {
  const path = resolve(file);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    const code = readProperty(cause, "code");
    const why = code === "ENOENT" ? "there is no such file" : `it cannot be read (${String(code)})`;
    throw unreadable(file, `${why}. Give a .yaml, .yml or .json file`, cause);
  }
  return { playbook: readPlaybook(await parse(text, file), file), path };
}

/** `null`: it is not there any more. */
export async function findPlaybook(path: string): Promise<PlaybookFile | null> {
  try {
    return await loadPlaybook(path);
  } catch (error) {
    if (readProperty(readProperty(error, "cause"), "code") === "ENOENT") return null;
    throw error;
  }
}

async function parse(text: string, file: string): Promise<unknown> {
  switch (extname(file).toLowerCase()) {
    case ".json":
      return parsedJson(text, file);
    case ".yaml":
    case ".yml":
      return parsedYaml(text, file);
    default:
      throw unreadable(file, "its name ends in neither .yaml, .yml nor .json");
  }
}

function parsedJson(text: string, file: string): unknown {
  try {
    return parseJson(text);
  } catch (cause) {
    throw unreadable(file, `it is not JSON: ${String(readProperty(cause, "message"))}`, cause);
  }
}

async function parsedYaml(text: string, file: string): Promise<unknown> {
  // Only whoever has such a file waits for the parser.
  const { parse: parseText } = await import("yaml");
  try {
    return parseText(text, { logLevel: "error" });
  } catch (cause) {
    const [problem = ""] = String(readProperty(cause, "message")).split("\n");
    throw unreadable(file, `it is not YAML: ${problem.replace(/:$/, "")}`, cause);
  }
}

function unreadable(file: string, why: string, cause?: unknown): PawlError {
  return new PawlError("invalid_playbook", `Playbook ${file}: ${why}.`, { fields: { file, path: "" }, cause });
}
