import type { Workflow } from "../core/workflow.ts";
import { linkWorkflow } from "./link-workflow.ts";
import { type Complete, notifyWorkflow } from "./notify-workflow.ts";
import type { PawlOptions } from "./pawl.ts";
import { scheduleWorkflow } from "./schedules.ts";

/** Whoever works also looks after schedules and links, whatever they are about; whoever has notifiers also sends notifications. */
export function withOwn(
  { workflows = [], notifiers = [] }: Pick<PawlOptions, "workflows" | "notifiers">,
  complete: Complete,
): readonly Workflow[] {
  const users = workflows as readonly Workflow[];
  const kept = workflows.length === 0 ? [] : [scheduleWorkflow, linkWorkflow as unknown as Workflow];
  const sent = notifiers.length === 0 ? [] : [notifyWorkflow(notifiers, complete)];
  return [...users, ...kept, ...sent];
}
