import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { PawlError, readProperty } from "../base/errors.ts";
import { parseJson, RepeatedKey } from "../base/json-text.ts";
import { type NextMove, nextOf } from "../core/next-of.ts";
import { action, addCommand, withClient } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import type { Output } from "./output.ts";
import { clean } from "./printable.ts";
import { findRun } from "./run-id.ts";

export function addNext(program: Command): void {
  addCommand(program, "next [run]", "tell what comes next in a run, from its state document alone", [
    "pawl next 0193a7c2 --json",
    "pawl next --document state.json",
  ])
    .option("--document <file>", "read this state document instead of a run")
    .action(
      action<{ readonly document?: string }, [string | undefined]>(async (call, text) => {
        const { document } = call.options;
        if ((document === undefined) === (text === undefined))
          throw new PawlError("invalid_argument", "Name a run, or a document with --document FILE.");
        const value =
          document === undefined
            ? await withClient(call, async (pawl) => pawl.get(await findRun(pawl, text ?? "")).document())
            : readDocument(document);
        const next = nextOf(value);
        if (call.out.isJson) call.out.json(next);
        else print(call.out, next);
        return EXIT.ok;
      }),
    );
}

/** A state document in a file. */
export function readDocument(file: string): unknown {
  try {
    return parseJson(readFileSync(file, "utf8"));
  } catch (cause) {
    const path = cause instanceof RepeatedKey ? cause.path : "";
    throw new PawlError("invalid_state_document", `${file} ${whyNone(cause)}. Give a file with a state document.`, {
      fields: { path, file },
      cause,
    });
  }
}

function whyNone(cause: unknown): string {
  const code = readProperty(cause, "code");
  if (cause instanceof RepeatedKey) return `has "${cause.path}" twice, and only one of the two would count`;
  if (code === undefined) return "is not JSON";
  return code === "ENOENT" ? "does not exist" : `cannot be read (${String(code)})`;
}

function print(out: Output, next: NextMove): void {
  for (const warning of next.warnings) out.note(`warning: ${clean(warning)}`);
  out.print(clean(sentence(next)));
  for (const { kind, name, instructions, outputs } of next.waiting_for) {
    if (instructions !== undefined) out.print(`  ${clean(instructions)}`);
    if (outputs !== undefined && outputs.length > 0) out.print(`  files: ${clean(outputs.join(", "))}`);
    if (next.action === "wait") out.print(`  ${kind}: ${clean(name)}`);
  }
  for (const [at, file] of Object.entries(next.inputs)) out.print(`  from ${clean(at)}: ${clean(file)}`);
}

function sentence({ run, action: move, phase, step, blocked }: NextMove): string {
  const at = step === null ? `phase "${phase}"` : `step "${step}" of phase "${phase}"`;
  switch (move) {
    case "run":
      return `Run ${run}: ${at} is next.`;
    case "do":
      return `Run ${run}: ${at} is to be done outside.`;
    case "decide":
      return `Run ${run} needs a decision${blocked === null ? "" : ` about "${blocked.at}": ${blocked.error} Choose: ${blocked.choices.join(", ")}`}.`;
    case "wait":
      return `Run ${run} goes on when what it waits for has come.`;
    case "nothing":
      return `Run ${run} has ended.`;
  }
}
