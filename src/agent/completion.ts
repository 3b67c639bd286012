// When an agent's work is done
// That the model has stopped is not enough: it may have stopped early (C-22).
import type { PromptResponse } from "./adapter.ts";
import { plan } from "./plan.ts";
import type { BoundPrompt } from "./prompt.ts";
import type { Section } from "./section.ts";
import type { SessionView } from "./session-view.ts";

/**
 * When the work is done: all steps of the plan are; the model has answered; or by a function, which answers with true, or with what is missing. It is
 * a pure function.
 */
export type Completion<O = unknown> =
  | "planDone"
  | "returned"
  | ((session: SessionView, response: PromptResponse<O>) => boolean | string);

/** Says what is missing; `null`: it is done. */
export function missingOf<O>(
  completion: Completion<O> | undefined,
  bound: BoundPrompt<O>,
  session: SessionView,
  response: PromptResponse<O>,
): string | null {
  const rule = completion ?? (hasPlanning(bound) ? "planDone" : "returned");
  // Nothing is no answer, whatever the provider calls it.
  if (rule === "returned") return response.text.trim() === "" ? "it has answered with nothing" : null;
  if (rule === "planDone") return missingOfPlan(session);
  const answer = rule(session, response);
  if (answer === true) return null;
  return answer === false ? "it has not passed the check of its completion" : answer;
}

function missingOfPlan(session: SessionView): string | null {
  const current = session.query(plan).latest();
  if (current === null) return "it has made no plan";
  if (current.status === "completed") return null;
  const open = current.steps.filter(({ status }) => status !== "done").map(({ id, title }) => `${id}. ${title}`);
  return open.length === 0 ? "its plan has no steps" : `steps of its plan are not done: ${open.join("; ")}`;
}

/** The prompt lets the model plan. */
export function hasPlanning(bound: BoundPrompt<unknown>): boolean {
  const sections = bound.prompt.sections as readonly Section<unknown>[];
  return sections.some(({ tools }) => tools.some(({ name }) => name === "planning_setup_plan"));
}
