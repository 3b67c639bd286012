import { toMs } from "../base/duration.ts";
import { DEFAULTS } from "../core/limits.ts";
import type { WorkerOptions } from "../worker/worker.ts";
import type { PawlOptions } from "./pawl.ts";
import { positive } from "./run-list.ts";

type Times = Pick<WorkerOptions, "leaseMs" | "stallMs" | "sweepMs" | "housekeepingMs" | "versionGraceMs" | "retention">;

/** The times that a worker goes by, in milliseconds, with their defaults. */
export function workerTimes({ lease, stall, versionGrace, retention }: PawlOptions): Times {
  const { succeeded, failed } = retention === false ? {} : (retention ?? {});
  return {
    leaseMs: positive("lease", lease === undefined ? DEFAULTS.leaseMs : toMs(lease, "lease")),
    stallMs: stall === undefined ? DEFAULTS.stallMs : toMs(stall, "stall"),
    sweepMs: DEFAULTS.sweepMs,
    housekeepingMs: DEFAULTS.housekeepingMs,
    versionGraceMs: versionGrace === undefined ? DEFAULTS.versionGraceMs : toMs(versionGrace, "versionGrace"),
    retention:
      retention === false
        ? null
        : {
            succeededMs:
              succeeded === undefined ? DEFAULTS.retention.succeededMs : toMs(succeeded, "retention.succeeded"),
            failedMs: failed === undefined ? DEFAULTS.retention.failedMs : toMs(failed, "retention.failed"),
          },
  };
}
