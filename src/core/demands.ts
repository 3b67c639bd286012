// Demands
// What an entry says may change how its run has to be executed: a build that took it for a mark would act where nothing was to be done. Such an entry
// demands to be understood. It says so by its key, which begins with "#" as no key of a call can (P6), and is otherwise of any type.
//
//   DM1. A run whose journal demands something that this build does not know is not begun by it, nor rewritten or forked.
//   DM2. The demand stands in the commit that makes it true, in the first entry that it holds for.
//   DM3. Builds from before this rule refuse it as well: they know the types that carry demands, and that their entries have no key.
import { hasCode, messageOf, PawlError, readProperty } from "../base/errors.ts";
import type { Parked } from "./journal.ts";

/** The run is dry (DR1). */
export const DRY = "#dry";

const KNOWN: ReadonlySet<string> = new Set([DRY]);

export function isDemand(key: string | null): boolean {
  return key?.startsWith("#") === true;
}

export function isKnownDemand(key: string | null): boolean {
  return key !== null && KNOWN.has(key);
}

/** Refuses an entry that only a newer build can follow (DM1). */
export function assertUnderstood(run: string, seq: number, key: string | null): void {
  if (!isDemand(key) || isKnownDemand(key)) return;
  throw new PawlError(
    "newer_journal",
    `Journal entry ${seq} of run ${run} demands "${key}", which this Pawl does not know: a newer one has written it. Upgrade Pawl here; nothing was done.`,
    { fields: { run, seq, demand: key } },
  );
}

/** The park of a run that only a newer build may go on with; `null` for any other error. Such a worker takes it up by itself. */
export function parkedForNewer(run: string, error: unknown): Parked | null {
  if (!hasCode(error, "newer_journal")) return null;
  const fields = readProperty(error, "fields");
  return {
    reason: "newer_journal",
    message: `Run ${run} waits for a newer worker. ${messageOf(error)} It goes on as soon as a worker that knows it looks; "retry" has it tried at once.`,
    choices: ["retry", "cancel"],
    detail: { demand: readProperty(fields, "demand"), seq: readProperty(fields, "seq") },
  };
}
