import { NOTIFY_WORKFLOW } from "./notification.ts";
import { SCHEDULE_WORKFLOW } from "./slot-run.ts";

/** What the runs that keep links to approvals are runs of. */
export const LINK_WORKFLOW = "pawl.link";

/** Those whose runs are the engine's own: they come with every worker, and nobody looks for them among the runs of users. */
export const OWN_WORKFLOWS: readonly string[] = [SCHEDULE_WORKFLOW, NOTIFY_WORKFLOW, LINK_WORKFLOW];

export function isOwnWorkflow(name: string): boolean {
  return OWN_WORKFLOWS.includes(name);
}
