import { AddStep, type PlanStep, SetupPlan, type StepStatus, UpdateStep } from "./plan.ts";
import type { SessionEvent } from "./session-event.ts";

/** A step that was used in another way than steps are meant to be. */
export interface PlanFinding {
  readonly rule: "done_before_in_progress" | "done_twice";
  readonly step: number;
  readonly message: string;
}

/** What is odd about marking a step so, or null. */
export function findingOf(
  { id, status }: Pick<PlanStep, "id" | "status">,
  next: StepStatus | undefined,
): PlanFinding | null {
  if (next !== "done" || status === "in_progress") return null;
  return status === "done"
    ? { rule: "done_twice", step: id, message: `Step ${id} was marked done twice.` }
    : {
        rule: "done_before_in_progress",
        step: id,
        message: `Step ${id} was marked done without having been in progress. Set a step to in_progress when you begin it.`,
      };
}

/** Looks at how a plan was used, by the events of a session in order. */
export function lintPlan(events: readonly SessionEvent[]): readonly PlanFinding[] {
  const findings: PlanFinding[] = [];
  let statuses: StepStatus[] = [];
  for (const event of events) {
    if (SetupPlan.is(event)) statuses = event.payload.steps.map(() => "pending");
    if (AddStep.is(event)) statuses.push(...event.payload.steps.map((): StepStatus => "pending"));
    if (!UpdateStep.is(event)) continue;
    const { id, status } = event.payload;
    const before = statuses[id - 1];
    if (before === undefined || status === undefined) continue;
    const finding = findingOf({ id, status: before }, status);
    if (finding !== null) findings.push(finding);
    statuses[id - 1] = status;
  }
  return findings;
}
