import { PawlError } from "../base/errors.ts";
import { jsonable } from "../base/jsonable.ts";
import { EXIT, type ExitCode, exitCodeOf } from "./exit-codes.ts";
import type { Output } from "./output.ts";
import { clean } from "./printable.ts";

/** Says what went wrong, for people or programs, and returns the code to exit with. */
export function reportFailure(error: unknown, out: Output): ExitCode {
  const isOperating = error instanceof PawlError;
  if (out.isJson) process.stderr.write(`${JSON.stringify({ error: facts(error) })}\n`);
  else process.stderr.write(`${out.noteColor.red("error:")} ${messageOf(error)}\n`);
  if (process.env.PAWL_DEBUG === "1" && error instanceof Error) process.stderr.write(`${describe(error)}\n`);
  else if (!isOperating && !out.isJson)
    process.stderr.write("This is a fault in Pawl itself. PAWL_DEBUG=1 shows where; please report it.\n");
  return isOperating ? exitCodeOf(error.code) : EXIT.fault;
}

function facts(error: unknown): object {
  if (error instanceof PawlError)
    return { code: error.code, message: error.message, ...(jsonable(error.fields) as object) };
  return { code: "fault", message: error instanceof Error ? error.message : String(error) };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message.split("\n").map(clean).join("\n") : clean(String(error));
}

function describe(error: Error): string {
  const cause = error.cause instanceof Error ? `\nCaused by: ${describe(error.cause)}` : "";
  return `${error.stack ?? error.message}${cause}`;
}
