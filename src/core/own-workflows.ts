import { PawlError } from "../base/errors.ts";
import { ALERTS_WORKFLOW } from "./alert.ts";
import { NOTIFY_WORKFLOW } from "./notification.ts";
import { assertNoSchedule, SCHEDULE_WORKFLOW } from "./slot-run.ts";

/** What the runs that keep links to approvals are runs of. */
export const LINK_WORKFLOW = "pawl.link";

/** The engine's own: they come with every worker, and nobody looks for their runs among those of users. */
export const OWN_WORKFLOWS: readonly string[] = [SCHEDULE_WORKFLOW, NOTIFY_WORKFLOW, ALERTS_WORKFLOW, LINK_WORKFLOW];

export function isOwnWorkflow(name: string): boolean {
  return OWN_WORKFLOWS.includes(name);
}

/** Whether anybody may start runs of it: what sends notifications would send whatever it is given, with links for those who may decide. */
export function assertStartable(workflow: unknown): void {
  assertNotBodiless(workflow);
  if (workflow !== NOTIFY_WORKFLOW) return;
  throw new PawlError("invalid_argument", "A notification is sent by the run that it is about. It cannot be started.");
}

/** Some runs are made by the engine alone. */
export function assertNotBodiless(workflow: unknown): void {
  assertNoSchedule(workflow);
  if (workflow !== ALERTS_WORKFLOW) return;
  throw new PawlError("invalid_argument", "Alerts are no workflow. Use pawl.alerts.");
}

/** Whether anybody may act on a run with this id, or begin one: those that keep alerts go on by themselves, whatever becomes of one of them. */
export function assertNotAlerts(run: unknown): void {
  if (typeof run !== "string" || !run.startsWith(`${ALERTS_WORKFLOW}.`)) return;
  throw new PawlError(
    "invalid_argument",
    `Run "${run}" keeps the alerts of its store, and nobody else has an id that begins like it. What is to be said to alerts is said with pawl.alerts or \`pawl alerts\`.`,
    { fields: { run } },
  );
}
