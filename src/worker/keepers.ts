import { ALERTS_WORKFLOW } from "../core/alert.ts";
import type { PassPorts } from "../core/pass-ports.ts";
import { SCHEDULE_WORKFLOW } from "../core/slot-run.ts";
import type { Store } from "../core/store.ts";
import { AlertKeeper } from "./alert-keeper.ts";
import type { Keeper } from "./run-loader.ts";
import { ScheduleKeeper } from "./schedule-keeper.ts";
import type { WorkerOptions } from "./worker.ts";

/** Who looks after runs without a body, by their workflows. */
export function keepersOf(
  store: Store,
  { codec, host, log, alerts }: Pick<WorkerOptions, "codec" | "host" | "log" | "alerts">,
  { notifies, mailed }: Pick<PassPorts, "notifies" | "mailed">,
): ReadonlyMap<string, Keeper> {
  const parts = { store, codec, host, log };
  const keepers: [string, Keeper][] = [[SCHEDULE_WORKFLOW, new ScheduleKeeper(parts)]];
  if (alerts !== null) keepers.push([ALERTS_WORKFLOW, new AlertKeeper({ ...parts, rules: alerts, notifies, mailed })]);
  return new Map(keepers);
}
