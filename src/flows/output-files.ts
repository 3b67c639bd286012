// Output files
// Large results go to files; the journal keeps name, hash and size. A file that is not what the journal says is never passed off as the result.
//
//   O1. A file is written whole and durably before the entry that names it.
//   O2. What is read is compared with its hash first.
import { readFileSync, statSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { decode, encode } from "../base/codec.ts";
import { PawlError, readProperty } from "../base/errors.ts";
import type { OutputFile } from "../core/outline.ts";
import { makeFolder, type Replacing, replaceFile, sha256 } from "../files/atomic-file.ts";

/** Where the files of a run are when its workflow and its store say nothing. */
export const DEFAULT_FOLDER: string = join(".pawl", "outputs");

/** Writes a result (O1). */
export async function writeOutput(folder: string, file: string, value: unknown, by: Replacing): Promise<OutputFile> {
  const path = join(folder, file);
  const { content, as } = contentFor(file, value);
  await makeFolder(dirname(path));
  await replaceFile(path, content, by);
  const bytes = typeof content === "string" ? Buffer.byteLength(content) : content.byteLength;
  return { file, sha256: sha256(content), bytes, as };
}

/** Names ending in .json hold any value that can be recorded; others text or bytes as they are. */
function contentFor(file: string, value: unknown): { content: string | Uint8Array; as: OutputFile["as"] } {
  if (extname(file) === ".json") return { content: readable(encode(value, { path: file })), as: "json" };
  if (typeof value === "string") return { content: value, as: "text" };
  if (value instanceof Uint8Array) return { content: value, as: "bytes" };
  throw new PawlError(
    "not_serializable",
    `The result for ${file} is ${value === null ? "null" : typeof value}. Return text or bytes, or give the file a name ending in .json.`,
    { fields: { path: file } },
  );
}

function readable(json: string): string {
  return `${JSON.stringify(JSON.parse(json), null, 2)}\n`;
}

/** How a file that somebody else has written is read. */
export function formOf(file: string): OutputFile["as"] {
  return extname(file) === ".json" ? "json" : "text";
}

/** What a file holds (O2). Throws `output_missing` if it is gone or is not what it was. `at`: whose output it is. */
export function readOutput(folder: string, output: OutputFile, at: string): unknown {
  const content = intact(folder, output, at);
  if (output.as === "bytes") return new Uint8Array(content);
  const text = content.toString("utf8");
  return output.as === "text" ? text : decode(text);
}

/** Compares a file with what was recorded of it. */
export function verifyOutput(folder: string, output: OutputFile, at: string): void {
  intact(folder, output, at);
}

/** Notices what is gone, without reading it. */
export function assertThere(folder: string, output: OutputFile, at: string): void {
  let bytes: number;
  try {
    bytes = statSync(join(folder, output.file)).size;
  } catch (cause) {
    throw lost(folder, output, at, "cannot be read", cause);
  }
  if (bytes !== output.bytes) throw lost(folder, output, at, `has ${bytes} bytes, not ${output.bytes}`);
}

function intact(folder: string, output: OutputFile, at: string): Buffer {
  let content: Buffer;
  try {
    content = readFileSync(join(folder, output.file));
  } catch (cause) {
    throw lost(folder, output, at, "cannot be read", cause);
  }
  if (sha256(content) !== output.sha256) throw lost(folder, output, at, "was changed: it has another hash");
  return content;
}

function lost(folder: string, { file }: OutputFile, at: string, what: string, cause?: unknown): PawlError {
  const code = readProperty(cause, "code");
  const why = code === "ENOENT" ? "is gone" : what;
  const phase = at.split(".")[0];
  return new PawlError(
    "output_missing",
    `The output file ${file} of "${at}" ${why} (${join(folder, file)}). Run "${at}" again, put the file back, or abort the run.`,
    { fields: { phase, at, file }, cause },
  );
}
