// Where in the user's code something went wrong, as people read it: "workflows/hello.ts:12".
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { isAbsolute, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ownFile } from "../stores/own-file.ts";
import { transform } from "./ts-hook.ts";

const OWN_FOLDER = fileURLToPath(new URL("..", import.meta.url));
const PLACE = /(file:\/\/[^\s()]+?|(?<=^|[\s(])(?:\/|[a-z]:\\)[^\s()]+?):(\d+)(?::\d+)?\)?$/i;

/** The first line of a user's file in an error's stack. A syntax error begins with it, if it has one at all. */
export function placeOf(error: unknown): string | null {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  for (const line of stack.split("\n")) {
    const place = placeIn(line);
    if (place !== null && !place.path.startsWith(OWN_FOLDER)) return relativeToHere(`${place.path}:${place.line}`);
  }
  return null;
}

/**
 * The place of a syntax error that only V8 sees. It tells nobody but the one who prints an uncaught error, so another process has to
 * die of it; it runs none of the user's code, since a graph of modules with such an error is never evaluated.
 */
export function syntaxPlace(path: string): string | null {
  const [loader, file] = [ownFile("#load"), path].map((one) => JSON.stringify(pathToFileURL(one).href));
  const script = `const { installHooks } = await import(${loader}); installHooks(); await import(${file});`;
  const { stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    encoding: "utf8",
    timeout: 10_000,
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  const place = placeIn(stderr.split("\n")[0] ?? "");
  return place === null ? null : relativeToHere(`${place.path}:${originalLine(place.path, place.line)}`);
}

function placeIn(text: string): { readonly path: string; readonly line: number } | null {
  const [, place, line] = PLACE.exec(text) ?? [];
  if (place === undefined) return null;
  return { path: place.startsWith("file:") ? fileURLToPath(place) : place, line: Number(line) };
}

/** V8 counts lines of the JavaScript that was made of a TypeScript file. */
function originalLine(path: string, line: number): number {
  if (!/\.m?ts$/.test(path)) return line;
  const map = new SourceMap(JSON.parse(transform(readFileSync(path, "utf8"), path).map));
  const entry = map.findEntry(line - 1, 0);
  return "originalLine" in entry ? entry.originalLine + 1 : line;
}

/** The same text with this process's folder taken off the paths in it. */
export function relativeToHere(text: string): string {
  const here = process.cwd();
  return text.replaceAll(/(?:\/|[a-z]:\\)[^\s'"`]+/gi, (path) => {
    const short = relative(here, path);
    return short === "" || short.startsWith("..") || isAbsolute(short) ? path : short;
  });
}
