import { DURABLE_PLANNING, type PlanningStrategy, STRATEGIES } from "./planning-guidance.ts";
import { planningTools } from "./planning-tools.ts";
import { type Section, section } from "./section.ts";

export interface PlanningSectionOptions {
  /** How the model is to go about its work. Default "plan-act-reflect". */
  readonly strategy?: PlanningStrategy;
  /** Whether progress is saved, and the model told that only planned work can be. Default true. */
  readonly durable?: boolean;
}

/** Tells the model to plan its work, how, and gives it the tools for it. */
export function planningSection(options: PlanningSectionOptions = {}): Section<unknown> {
  const { strategy = "plan-act-reflect", durable = true } = options;
  const guidance = STRATEGIES[strategy];
  const body = durable ? `${guidance}\n\n${DURABLE_PLANNING}` : guidance;
  return section({ title: "Planning", key: "planning", body: () => body, tools: planningTools });
}
