import { readFileSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { PawlError } from "../base/errors.ts";

/** Reads a value from the command line: JSON, `@file` with JSON in it, or `-` for JSON on stdin. None: `undefined`. */
export async function readValue(argument: string | undefined, what: string): Promise<unknown> {
  if (argument === undefined) return undefined;
  if (argument === "-") return parse(textOf(await buffer(process.stdin), `${what} on stdin`), `${what} on stdin`, null);
  if (argument.startsWith("@"))
    return parse(readText(argument.slice(1), what), `${what} in ${argument.slice(1)}`, null);
  return parse(argument, what, argument);
}

function readText(path: string, what: string): string {
  try {
    return textOf(readFileSync(path), `${what} in ${path}`);
  } catch (cause) {
    if (cause instanceof PawlError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? `there is no file ${path}` : `${path} cannot be read (${code})`;
    throw new PawlError("invalid_argument", `${what}: ${why}. Give @ and the path of a file with JSON in it.`, {
      fields: { what, path },
      cause,
    });
  }
}

/** Bytes that are no text would be recorded as other text; a byte order mark, as some editors write it, means nothing. */
function textOf(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new PawlError("invalid_argument", `${what} is not valid UTF-8. Save it as UTF-8 and try again.`, {
      fields: { what },
      cause,
    });
  }
}

function parse(json: string, what: string, typed: string | null): unknown {
  try {
    return JSON.parse(json);
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message.replace(/, \.\.\..*$|, "[\s\S]*$/, "") : String(cause);
    throw new PawlError("invalid_argument", `${what} is not JSON: ${problem}. ${adviceFor(typed)}`, {
      fields: { what },
      cause,
    });
  }
}

/** Shells eat quotes, and a bare word is no JSON: these are what people meet first. */
function adviceFor(typed: string | null): string {
  if (typed === null) return "Correct it and try again.";
  const isWord = /^[\p{L}\p{N}_.@ -]+$/u.test(typed);
  if (isWord) return `For text, quote it twice: '${JSON.stringify(typed)}'.`;
  return `Put JSON in single quotes, such as '{"name":"Ada"}', or give @file, or - for stdin.`;
}

/** A whole number of at least `least`, as an option takes it. */
export function wholeNumber(value: string, option: string, least: number): number {
  const number = Number(value);
  if (value.trim() !== "" && Number.isSafeInteger(number) && number >= least) return number;
  throw new PawlError("invalid_argument", `${option} "${value}" is not a whole number of at least ${least}.`, {
    fields: { option, value },
  });
}
