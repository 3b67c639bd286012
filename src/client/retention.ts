import { toMs } from "../base/duration.ts";
import { DEFAULTS } from "../core/limits.ts";
import type { WorkerOptions } from "../worker/worker.ts";
import type { PawlOptions } from "./pawl-options.ts";

/** How long finished runs are kept; `null`: for ever. */
export function retentionOf(given: PawlOptions["retention"]): WorkerOptions["retention"] {
  if (given === false) return null;
  const { succeeded, failed } = given ?? {};
  return {
    succeededMs: succeeded === undefined ? DEFAULTS.retention.succeededMs : toMs(succeeded, "retention.succeeded"),
    failedMs: failed === undefined ? DEFAULTS.retention.failedMs : toMs(failed, "retention.failed"),
  };
}
