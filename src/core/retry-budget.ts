// The retry budget of a workflow
// How many retries its steps may make in a while, all runs of one process together: when something is down for all of them, retries must not
// become the load that keeps it down. Beyond the budget a failure is final.
import { type Duration, toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import type { StepCall } from "./call.ts";
import type { Pass } from "./pass.ts";
import type { PassPorts } from "./pass-ports.ts";
import { recordable } from "./values.ts";

/** At most so many retries in any span of this length, in one process. */
export interface RetryBudgetOptions {
  /** Retries of all steps of the workflow together. */
  readonly max: number;
  /** The length of the span: "1m". */
  readonly per: Duration;
}

export interface RetryBudget {
  readonly max: number;
  readonly perMs: number;
}

export function retryBudget(workflow: string, { max, per }: RetryBudgetOptions): RetryBudget {
  const perMs = toMs(per, "retryBudget.per");
  if (Number.isSafeInteger(max) && max >= 0 && perMs > 0) return { max, perMs };
  throw new PawlError(
    "invalid_argument",
    `Workflow "${workflow}": retryBudget is ${max} per ${per}. Give a whole number and a duration above zero, such as { max: 100, per: "1m" }.`,
    { fields: { workflow } },
  );
}

// Of each worker and workflow: when retries were taken.
const takenBy = new WeakMap<PassPorts, Map<string, number[]>>();

/** Takes one retry, or gives the error that the step ends with. */
export function takeRetry({ id, workflow, ports }: Pass, call: StepCall, cause: unknown): PawlError | null {
  const budget = workflow.definition.retryBudget;
  if (budget === null) return null;
  const now = ports.clock.now();
  const all = takenBy.get(ports) ?? new Map<string, number[]>();
  takenBy.set(ports, all);
  const taken = (all.get(workflow.name) ?? []).filter((at) => now - at < budget.perMs);
  all.set(workflow.name, taken);
  if (taken.length < budget.max) {
    taken.push(now);
    return null;
  }
  const message =
    `Step "${call.key}" of run ${id} is not tried again: the ${budget.max} retries that workflow "${workflow.name}" has in ${budget.perMs / 1000} s are used up. ` +
    "The last error is the cause. Retry the run later, or raise `retryBudget`.";
  const fields = { run: id, step: call.key, workflow: workflow.name, attempts: call.attempt };
  return new PawlError("retry_budget_exceeded", message, { fields, cause: recordable(cause) });
}
