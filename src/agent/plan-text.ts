import type { Plan, PlanStep } from "./plan.ts";

/** A plan for the model: what is done with a check mark, what is left with its status. */
export function planText({ objective, status, steps }: Plan): string {
  const done = steps.filter((step) => step.status === "done");
  const left = steps.filter((step) => step.status !== "done");
  const blocks = [
    `Objective: ${objective}`,
    listed("Done:", done, ({ id, title }) => `- ✓ ${id}. ${title}`),
    listed("Remaining:", left, (step) => `- ${step.id}. ${step.title} (${step.status})`),
    ...(status === "completed" ? ["Every step is done."] : []),
  ];
  return blocks.filter((block) => block !== "").join("\n\n");
}

function listed(heading: string, steps: readonly PlanStep[], line: (step: PlanStep) => string): string {
  return steps.length === 0 ? "" : [heading, ...steps.map(line)].join("\n");
}
