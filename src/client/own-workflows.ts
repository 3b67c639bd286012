import type { Workflow } from "../core/workflow.ts";
import { alertsWorkflow } from "./alerts-run.ts";
import { linkWorkflow } from "./link-workflow.ts";
import { type Complete, notifyWorkflow } from "./notify-workflow.ts";
import type { PawlOptions } from "./pawl-options.ts";
import { scheduleWorkflow } from "./schedules.ts";

export interface OwnParts {
  /** What is added to a notification when it is sent. */
  readonly complete: Complete;
  readonly hasAlerts: boolean;
}

/** Whoever works also looks after schedules, links and alerts, whatever they are about; whoever has notifiers also sends notifications. */
export function withOwn(
  { workflows = [], notifiers = [] }: Pick<PawlOptions, "workflows" | "notifiers">,
  { complete, hasAlerts }: OwnParts,
): readonly Workflow[] {
  const users = workflows as readonly Workflow[];
  const kept = [scheduleWorkflow, linkWorkflow as unknown as Workflow, ...(hasAlerts ? [alertsWorkflow] : [])];
  const sent = notifiers.length === 0 ? [] : [notifyWorkflow(notifiers, complete)];
  return [...users, ...(users.length === 0 ? [] : kept), ...sent];
}
