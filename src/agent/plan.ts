// The plan of an agent
// What is to be done, in steps that the model names and marks. It is what progress means: a step that is done is a milestone.

import { replace } from "./operation.ts";
import { reducing, when } from "./reducers.ts";
import { type EventType, eventType } from "./session-event.ts";
import { type Slice, slice } from "./slice.ts";

export type StepStatus = "pending" | "in_progress" | "done";

export interface PlanStep {
  /** Counted from 1, never used again. */
  readonly id: number;
  readonly title: string;
  readonly status: StepStatus;
}

export interface Plan {
  readonly objective: string;
  /** "completed" as soon as every step is done. */
  readonly status: "active" | "completed";
  readonly steps: readonly PlanStep[];
}

/** A plan takes the place of the one before, if there is one. */
export const SetupPlan: EventType<{ readonly objective: string; readonly steps: readonly string[] }> =
  eventType("SetupPlan");
/** Steps come to the end of the plan. */
export const AddStep: EventType<{ readonly steps: readonly string[] }> = eventType("AddStep");
/** A step has a new title, a new status, or both. */
export const UpdateStep: EventType<{
  readonly id: number;
  readonly title?: string;
  readonly status?: StepStatus;
}> = eventType("UpdateStep");

/** The plan of a session: one value, or none. */
export const plan: Slice<Plan> = slice<Plan>("plan", {
  on: [
    reducing(SetupPlan, (_plans: readonly Plan[], { payload }) =>
      replace([withStatus({ objective: payload.objective.trim(), steps: stepsOf(payload.steps, 1) })]),
    ),
    when(AddStep, (current: Plan, { steps }) =>
      current.status === "completed"
        ? null
        : withStatus({ ...current, steps: [...current.steps, ...stepsOf(steps, current.steps.length + 1)] }),
    ),
    when(UpdateStep, (current: Plan, { id, title, status }) =>
      current.status === "completed"
        ? null
        : withStatus({
            ...current,
            steps: current.steps.map((step) =>
              step.id === id ? { id, title: title?.trim() ?? step.title, status: status ?? step.status } : step,
            ),
          }),
    ),
  ],
});

/** Steps are never removed, so their number says which ids were used. */
function stepsOf(titles: readonly string[], firstId: number): readonly PlanStep[] {
  return titles.map((title, index) => ({ id: firstId + index, title: title.trim(), status: "pending" }));
}

function withStatus(current: Pick<Plan, "objective" | "steps">): Plan {
  const isDone = current.steps.length > 0 && current.steps.every(({ status }) => status === "done");
  return { objective: current.objective, status: isDone ? "completed" : "active", steps: current.steps };
}
