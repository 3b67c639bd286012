import { isName } from "../base/ids.ts";
import type { Definition } from "../core/workflow.ts";
import type { PhasesOptions } from "./phase-spec.ts";

/** How the ids of runs that have a key of the business are made: readable, and the same for the same key on the same day. */
export function runIdOf({
  name: workflow,
  prefix = "wf",
  correlation,
  runId,
}: Pick<PhasesOptions<never, never>, "name" | "prefix" | "correlation" | "runId">): Definition["runId"] {
  return ({ key, input, now }) => {
    const found = key ?? (correlation === undefined ? null : textIn(input, correlation));
    if (found === null) return null;
    const date = new Date(now).toISOString().slice(0, 10).replaceAll("-", "");
    const facts = { prefix, workflow, key: found, date };
    if (runId !== undefined) return runId(facts);
    const id = tidy([prefix, workflow, found, date].join("-"));
    // One that is too long says less than one that is made as for any run.
    return isName(id) ? id : null;
  };
}

/** Keys of a business may hold what ids must not. */
function tidy(id: string): string {
  return id.replace(/[#/\\\s\p{Cc}\p{Zl}\p{Zp}]+/gu, "_");
}

function textIn(value: unknown, field: string): string | null {
  const text = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[field] : null;
  return typeof text === "string" && text !== "" ? text : null;
}
