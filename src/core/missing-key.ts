import { hasCode, messageOf, readProperty } from "../base/errors.ts";
import type { Parked } from "./journal.ts";

/** The park of a run whose values are sealed with a key that is not here; `null` for any other error. A worker that has it takes the run up by itself. */
export function parkedForKey(run: string, error: unknown): Parked | null {
  if (!hasCode(error, "key_missing")) return null;
  const key = readProperty(readProperty(error, "fields"), "key");
  return {
    reason: "key_missing",
    message: `Run ${run} waits for a key. ${messageOf(error)} It goes on as soon as a worker has it; "retry" has it tried at once.`,
    choices: ["retry", "cancel"],
    detail: { key },
  };
}
