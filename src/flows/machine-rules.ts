// What a step may decide
// Checks what a step or an agent has returned against the plan, before anything of it counts. What it does not allow changes nothing.
import { type Duration, toMs } from "../base/duration.ts";
import { messageOf, PawlError } from "../base/errors.ts";
import { validateNow } from "../core/schema.ts";
import { isPlainRecord } from "../core/stable-digest.ts";
import type { MachinePlan, PlannedStep } from "./machine-plan.ts";
import type { AgentOutcome, StepOf } from "./machine-step.ts";
import { type Transition, WORDS } from "./machine-transition.ts";
import { patched, type State, type StepPatch } from "./patch.ts";

export type AnyTransition = Transition<State>;

/** Where a machine is when something is decided. */
export interface Situation {
  readonly plan: MachinePlan;
  readonly state: State;
  /** Keys of the effects that it has planned so far. */
  readonly effects: readonly string[];
}

const KNOWN: ReadonlySet<unknown> = new Set(["continue", "fail", ...WORDS]);
const WITH_REASON: ReadonlySet<string> = new Set(["fail", "retry", "compensate", "cancel", "escalate"]);

/** A transition that this step may return here. Throws `invalid_transition` or `illegal_transition`. */
export function accept(situation: Situation, step: PlannedStep, given: unknown): AnyTransition {
  if (!isPlainRecord(given) || !KNOWN.has(given["transition"])) throw bare(step.name, given);
  const word = given["transition"] as AnyTransition["transition"];
  if (!step.can.has(word)) throw illegal(step, `"${word}"`, `It can: ${[...step.can].join(", ")}`);
  assertFields(situation, step, given as unknown as AnyTransition, given);
  if (given["patch"] !== undefined) {
    assertPatch(situation, step.name, given["patch"]);
    stateAfter(situation, [{ step: step.name, patch: given["patch"] as State }]);
  }
  return given as unknown as AnyTransition;
}

function assertFields(
  { plan, state, effects }: Situation,
  step: PlannedStep,
  transition: AnyTransition,
  given: Record<string, unknown>,
): void {
  const { name } = step;
  const word = transition.transition;
  if (WITH_REASON.has(word) && (typeof given["reason"] !== "string" || given["reason"].trim() === ""))
    throw invalid(name, "reason", `"${word}" needs a reason.`);
  switch (transition.transition) {
    case "continue":
      return assertNext(step, transition.next);
    case "wait_for_approval":
      assertNext(step, transition.approval);
      if (plan.steps.get(transition.approval)?.step.kind !== "approval")
        throw invalid(name, "approval", `"${transition.approval}" is no step that asks for an approval.`);
      return;
    case "wait":
      assertNext(step, transition.next);
      if (transition.late !== undefined) assertNext(step, transition.late);
      if ([transition.for, transition.until, transition.signal].filter((one) => one !== undefined).length !== 1)
        throw invalid(name, "wait", '"wait" needs exactly one of `for`, `until` and `signal`.');
      assertDuration(name, "for", transition.for);
      assertDuration(name, "timeout", transition.timeout);
      assertTime(name, transition.until);
      if (transition.into !== undefined && !Object.hasOwn(state, transition.into))
        throw unknownField(name, state, transition.into);
      return;
    case "retry":
      return assertDuration(name, "delay", transition.delay);
    case "escalate":
      if (transition.next !== undefined) assertNext(step, transition.next);
      return;
    case "compensate":
      if (transition.action !== undefined && !effects.includes(transition.action))
        throw invalid(
          name,
          "action",
          `This run has done no "${transition.action}" that could be undone. It has: ${effects.join(", ") || "none"}.`,
        );
      return;
    default:
  }
}

function assertNext(step: PlannedStep, next: unknown): void {
  if (step.next.has(next as string)) return;
  throw illegal(
    step,
    `to go on to ${JSON.stringify(next)}`,
    `Its next steps are: ${[...step.next].join(", ") || "none"}`,
  );
}

function assertDuration(step: string, field: string, value: Duration | undefined): void {
  try {
    if (value !== undefined) toMs(value, field);
  } catch (error) {
    throw invalid(step, field, messageOf(error));
  }
}

function assertTime(step: string, until: Date | number | undefined): void {
  if (until === undefined || !Number.isNaN(new Date(until instanceof Date ? until : Number(until)).getTime())) return;
  throw invalid(step, "until", "`until` is a valid Date, or a time in milliseconds since 1970.");
}

function assertPatch({ state }: Situation, step: string, patch: unknown): asserts patch is State {
  if (!isPlainRecord(patch)) throw invalid(step, "patch", "A patch is a plain object with fields of the state.");
  for (const field of Object.keys(patch)) if (!Object.hasOwn(state, field)) throw unknownField(step, state, field);
}

/** The fields that these patches change, as they are then; the state with them fits its schema. */
export function stateAfter({ plan, state }: Situation, patches: readonly StepPatch[]): State {
  const changed = patched(state, patches, plan.rules);
  const [first] = patches;
  if (first !== undefined)
    validateNow(plan.schema, { ...state, ...changed }, `The state of "${plan.name}" after step "${first.step}"`);
  return changed;
}

/** Why what an agent has returned is not taken; `null` if it is. */
export function refusalOf({ next }: PlannedStep, { spec }: StepOf<"agent">, given: unknown): string | null {
  if (!isPlainRecord(given)) return `it returned ${shown(given)}, which is no outcome`;
  if ("transition" in given) return `it wants to decide (${shown(given["transition"])}); that is for the machine`;
  const outcome = given as unknown as AgentOutcome<unknown>;
  switch (outcome.outcome) {
    case "result":
      if (!("value" in given)) return "its result has no value";
      if (outcome.next !== undefined && !next.has(outcome.next))
        return `it proposes ${shown(outcome.next)}, and its next steps are: ${[...next].join(", ") || "none"}`;
      return misfit(spec.result, outcome.value);
    case "refusal":
    case "error":
    case "escalation":
      return typeof outcome.reason === "string" ? null : `its ${outcome.outcome} has no reason`;
    default:
      return `its outcome is ${shown(given["outcome"])}, which is none of: result, refusal, error, escalation`;
  }
}

function misfit(schema: StepOf<"agent">["spec"]["result"], value: unknown): string | null {
  try {
    validateNow(schema, value, "its result");
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

export function tooManyRejections(step: PlannedStep, count: number, last: string): PawlError {
  return new PawlError(
    "illegal_transition",
    `The agent of step "${step.name}" was refused ${count} ${count === 1 ? "time" : "times"}, the last time because ${last}. Correct the agent, or raise \`proposals\` of the step.`,
    { fields: { step: step.name, rejected: count, next: [...step.next] } },
  );
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 100 ? `${text.slice(0, 99)}…` : text;
}

function bare(step: string, given: unknown): PawlError {
  return new PawlError(
    "invalid_transition",
    `Step "${step}" returned ${shown(given)}, which is no transition. Return one, such as { transition: "continue", next } or { transition: "complete", output }.`,
    { fields: { step } },
  );
}

function illegal({ name, next, can }: PlannedStep, what: string, allowed: string): PawlError {
  return new PawlError(
    "illegal_transition",
    `Step "${name}" wants ${what}, which its definition does not allow. ${allowed}. Correct the step, or name it in \`next\` or \`can\`.`,
    { fields: { step: name, next: [...next], can: [...can] } },
  );
}

function unknownField(step: string, state: State, field: string): PawlError {
  return invalid(step, field, `The state has no field "${field}". It has: ${Object.keys(state).join(", ")}.`);
}

function invalid(step: string, field: string, what: string): PawlError {
  return new PawlError("invalid_transition", `Step "${step}" returned a transition that cannot be used. ${what}`, {
    fields: { step, field },
  });
}
