import { PawlError } from "../base/errors.ts";
import type { Verdict } from "../core/store.ts";

/** A run id that exists already is our own earlier write: its answer was lost (I2). */
export function startRefusal(run: string, verdict: Verdict): PawlError | null {
  if (verdict.kind === "refused" && verdict.why === "exists") return null;
  return new PawlError(
    "storage_unavailable",
    `Run ${run} could not be started: the store answered "${verdict.kind}". Start it again.`,
    verdict.kind === "failed" ? { cause: verdict.error } : {},
  );
}
