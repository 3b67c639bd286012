import { PawlError } from "../base/errors.ts";
import { ALERTS_WORKFLOW } from "./alert.ts";
import { NOTIFY_WORKFLOW } from "./notification.ts";
import { assertNoSchedule, SCHEDULE_WORKFLOW } from "./slot-run.ts";

/** The engine's own: their runs keep schedules and alerts, or send notifications, and people do not look for them. */
export const OWN_WORKFLOWS: readonly string[] = [SCHEDULE_WORKFLOW, NOTIFY_WORKFLOW, ALERTS_WORKFLOW];

export function isOwnWorkflow(workflow: string): boolean {
  return OWN_WORKFLOWS.includes(workflow);
}

/** Some runs have no body, and only the engine makes them. */
export function assertNotBodiless(workflow: unknown): void {
  assertNoSchedule(workflow);
  if (workflow !== ALERTS_WORKFLOW) return;
  throw new PawlError("invalid_argument", "Alerts are no workflow. Use pawl.alerts.");
}
