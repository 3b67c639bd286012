import { hostname } from "node:os";
import { toMs } from "../base/duration.ts";
import { DEFAULTS } from "../core/limits.ts";
import type { WorkerOptions } from "../worker/worker.ts";
import type { Machine } from "./machine.ts";
import type { PawlOptions } from "./pawl-options.ts";
import { retentionOf } from "./retention.ts";
import { positive } from "./run-list.ts";

type Given = Pick<
  WorkerOptions,
  "registry" | "codec" | "log" | "host" | "pollMs" | "callbackSecrets" | "alerts" | "newId" | "redaction" | "secrets"
>;

/** What a worker is told of the options that an engine was opened with. */
export function workerOptions(
  options: PawlOptions,
  { sliceRuns, random, identity }: Machine,
  given: Given,
): WorkerOptions {
  const { concurrency = DEFAULTS.concurrency, lease, stall, versionGrace } = options;
  return {
    ...given,
    name: options.name ?? hostname(),
    concurrency: positive("concurrency", concurrency),
    leaseMs: positive("lease", lease === undefined ? DEFAULTS.leaseMs : toMs(lease, "lease")),
    stallMs: stall === undefined ? DEFAULTS.stallMs : toMs(stall, "stall"),
    sweepMs: DEFAULTS.sweepMs,
    housekeepingMs: DEFAULTS.housekeepingMs,
    versionGraceMs: versionGrace === undefined ? DEFAULTS.versionGraceMs : toMs(versionGrace, "versionGrace"),
    retention: retentionOf(options.retention),
    sliceRuns,
    random,
    identity,
  };
}
