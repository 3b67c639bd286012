// What the model is told about planning

/** How the model is to go about its work. */
export type PlanningStrategy = "react" | "plan-act-reflect" | "goal-decompose-route-synthesise";

export const STRATEGIES: Readonly<Record<PlanningStrategy, string>> = {
  react: [
    "Work in short rounds:",
    "",
    "1. Reason: say what you know and what is missing.",
    "2. Act: take the one action that brings you furthest.",
    "3. Observe: look at what it gave, and bring the plan up to date before the next round.",
  ].join("\n"),
  "plan-act-reflect": [
    "Go through three phases, again and again until every step is done:",
    "",
    "1. Plan: write the steps down before you begin, and choose the next one.",
    "2. Act: set it to `in_progress`, do it, and nothing else.",
    "3. Reflect: compare the result with the objective. Mark the step `done` if it holds; add or rename steps if the plan was wrong.",
  ].join("\n"),
  "goal-decompose-route-synthesise": [
    "Go from the goal to its parts and back:",
    "",
    "1. Goal: put what is wanted into one sentence, the objective of the plan.",
    "2. Decompose: split it into parts that do not depend on each other, one step for each.",
    "3. Route: give each part to the tool that suits it best.",
    "4. Synthesise: bring the results together in a last step, and check them against the goal.",
  ].join("\n"),
};

/** For work that goes on after an interruption: why there must be a plan, and what a step is. */
export const DURABLE_PLANNING: string = [
  "### Planning is required",
  "",
  "For work of more than one step:",
  "",
  "- Begin with `planning_setup_plan`: it states the objective.",
  "- Break the work down into steps. A step found later is added with `planning_add_step`.",
  "- Set a step to `in_progress` when you begin it and to `done` when it is finished, with `planning_update_step`.",
  "- Progress is saved by itself whenever a step is done.",
  "- Work outside of the plan cannot be saved: after an interruption it is lost.",
  "",
  "A good step is",
  "",
  "- meaningful: worth saving once it is done,",
  "- resumable: the next step needs nothing of it but what tools have stored,",
  "- atomic: done or not done, never half.",
].join("\n");

/** For prompts of work that was interrupted: shown as soon as there is something to go on from. */
export const NO_EARLIER_FILES =
  "Files that you made earlier may be gone. Rely on what this prompt lists and on what tools look up, and make a file again if you need it.";
