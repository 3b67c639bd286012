// Planning tools
// How a model makes its plan and says how far it is. They change the session and nothing outside; what they refuse is told to the model, which
// can do better at once.
import { PawlError } from "../base/errors.ts";
import { AddStep, type Plan, plan, SetupPlan, type StepStatus, UpdateStep } from "./plan.ts";
import { findingOf } from "./plan-lint.ts";
import { planText } from "./plan-text.ts";
import type { SessionView } from "./session-view.ts";
import type { Tool, ToolInfo, ToolResult } from "./tool.ts";

const MAX_TITLE = 500;

const TITLE = { type: "string", minLength: 1, maxLength: MAX_TITLE };
const STATUSES: readonly StepStatus[] = ["pending", "in_progress", "done"];

/** Why a call is refused, for the model. */
class Refusal {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

interface PlanningTool {
  readonly name: string;
  readonly description: string;
  readonly properties: Readonly<Record<string, object>>;
  readonly required: readonly string[];
  run(params: Readonly<Record<string, unknown>>, info: ToolInfo): ToolResult;
}

function planningTool({ name, description, properties, required, run }: PlanningTool): Tool {
  const jsonSchema = { type: "object", properties, required, additionalProperties: false };
  return Object.freeze<Tool>({
    name,
    description,
    class: "read",
    inOrder: true,
    input: { jsonSchema },
    jsonSchema,
    run(params, info) {
      assertPlanSlice(info.session);
      try {
        return run(params as Readonly<Record<string, unknown>>, info);
      } catch (thrown) {
        if (thrown instanceof Refusal) return { message: thrown.message, success: false };
        throw thrown;
      }
    },
  });
}

const setupPlan = planningTool({
  name: "planning_setup_plan",
  description:
    "Makes the plan: an objective and its first steps. Takes the place of a plan that is there; steps are numbered from 1.",
  properties: {
    objective: { ...TITLE, description: "What is to be reached, in one sentence." },
    steps: { type: "array", items: TITLE, description: "The titles of the steps, in order." },
  },
  required: ["objective"],
  run(params, { dispatch }) {
    const objective = titleOf(params["objective"], "objective");
    const steps = titlesOf(params["steps"] ?? []);
    dispatch(SetupPlan({ objective, steps }));
    return { message: `The plan is set up with ${counted(steps.length)}.`, value: { objective, steps } };
  },
});

const addStep = planningTool({
  name: "planning_add_step",
  description: "Adds steps at the end of the plan. Numbering goes on.",
  properties: {
    steps: { type: "array", items: TITLE, minItems: 1, description: "The titles of the steps, in order." },
  },
  required: ["steps"],
  run(params, { session, dispatch }) {
    const { steps: known } = activePlan(session);
    const steps = titlesOf(params["steps"]);
    if (steps.length === 0) throw new Refusal("`steps` is empty. Give the title of at least one step.");
    dispatch(AddStep({ steps }));
    const ids = steps.map((_title, index) => known.length + index + 1);
    return { message: `Added ${counted(steps.length)}: ${ids.join(", ")}.`, value: { ids, steps } };
  },
});

const updateStep = planningTool({
  name: "planning_update_step",
  description: "Changes the status or the title of a step. Progress is saved when a step is done.",
  properties: {
    id: { type: "integer", minimum: 1, description: "The number of the step." },
    status: { type: "string", enum: STATUSES },
    title: TITLE,
  },
  required: ["id"],
  run(params, { session, dispatch }) {
    const { steps } = activePlan(session);
    const step = steps.find(({ id }) => id === params["id"]);
    if (step === undefined) throw new Refusal(`There is no step ${String(params["id"])}. ${knownSteps(steps.length)}`);
    const update = { id: step.id, ...changesOf(params) };
    dispatch(UpdateStep(update));
    const note = findingOf(step, update.status);
    const said = [`Step ${step.id} is ${update.status ?? `now called "${update.title}"`}.`, nextOf(session)];
    return { message: [...said, ...(note === null ? [] : [`Note: ${note.message}`])].join(" "), value: update };
  },
});

const readPlan = planningTool({
  name: "planning_read_plan",
  description: "Shows the plan with the status of every step.",
  properties: {},
  required: [],
  run(_params, { session }) {
    return { message: planText(currentPlan(session)) };
  },
});

/** The four tools that a plan is made and kept with. */
export const planningTools: readonly Tool[] = Object.freeze([setupPlan, addStep, updateStep, readPlan]);

function assertPlanSlice(session: SessionView): void {
  if (session.has(plan)) return;
  throw new PawlError(
    "invalid_argument",
    `Session "${session.id}" has no plan to work on. Give the slice \`plan\` in \`slices\` where the session is made.`,
    { fields: { session: session.id, slice: plan.name } },
  );
}

function currentPlan(session: SessionView): Plan {
  const current = session.query(plan).latest();
  if (current === null) throw new Refusal("There is no plan yet. Make one with planning_setup_plan.");
  return current;
}

function activePlan(session: SessionView): Plan {
  const current = currentPlan(session);
  if (current.status === "completed")
    throw new Refusal("The plan is completed. For more work make a new one with planning_setup_plan.");
  return current;
}

function changesOf(params: Readonly<Record<string, unknown>>): { status?: StepStatus; title?: string } {
  const { status, title } = params;
  if (status === undefined && title === undefined) throw new Refusal("Give `status`, `title`, or both.");
  if (status !== undefined && !STATUSES.includes(status as StepStatus))
    throw new Refusal(`\`status\` cannot be ${JSON.stringify(status)}. Use one of: ${STATUSES.join(", ")}.`);
  return {
    ...(status !== undefined && { status: status as StepStatus }),
    ...(title !== undefined && { title: titleOf(title, "title") }),
  };
}

function titlesOf(given: unknown): readonly string[] {
  if (!Array.isArray(given)) throw new Refusal("`steps` must be a list of titles.");
  return given.map((title, index) => titleOf(title, `steps[${index}]`));
}

function titleOf(given: unknown, field: string): string {
  const title = typeof given === "string" ? given.trim() : "";
  if (title === "") throw new Refusal(`\`${field}\` must be text, and not empty.`);
  if (title.length > MAX_TITLE)
    throw new Refusal(`\`${field}\` has ${title.length} characters, more than ${MAX_TITLE}. Say it shorter.`);
  return title;
}

function counted(steps: number): string {
  return steps === 1 ? "1 step" : `${steps} steps`;
}

function knownSteps(count: number): string {
  return count === 0 ? "The plan has no steps yet." : `The plan has steps 1 to ${count}.`;
}

function nextOf(session: SessionView): string {
  const { status, steps } = currentPlan(session);
  if (status === "completed") return "All steps are done: the plan is completed.";
  const next = steps.find((step) => step.status !== "done")!;
  const done = steps.filter((step) => step.status === "done").length;
  return `${done} of ${steps.length} done; next is ${next.id}. ${next.title} (${next.status}).`;
}
