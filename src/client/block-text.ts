// What people and callers are told about a run that is blocked.
import { PawlError } from "../base/errors.ts";
import type { Parked } from "../core/journal.ts";
import type { Block } from "../core/outline.ts";

/** Like a park, since it is decided like one. */
export function parkOfBlock(run: string, block: Block): Parked {
  const { reason, at, of, error, choices } = block;
  return { reason, message: textOf(run, block), choices, detail: { at, ...(of !== undefined && { of }), error } };
}

/** What a caller that cannot go on is told. */
export function blockedError(run: string, block: Block): PawlError {
  const { reason, at, of, error, choices } = block;
  const phase = (of ?? at).split(".")[0];
  return new PawlError(reason, textOf(run, block), {
    fields: { run, phase, at, ...(of !== undefined && { of }), error, choices },
    cause: new Error(error),
  });
}

function textOf(run: string, { at, error, choices }: Block): string {
  const shown = choices.map((choice) => (choice === "skip" ? 'skip --reason "…"' : choice));
  return `"${at}" failed, and nothing after it begins before a person decides: ${error}${/[.!?]$/.test(error) ? "" : "."} Choose with \`pawl resolve ${run}\` ${shown.join(", ")}.`;
}
