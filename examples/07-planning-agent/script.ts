// A model whose answers are known: it follows the plan that it sees in its prompt and in what its tools have said. It remembers nothing, so it goes
// on after any crash.
import { callTools, type ModelPart, type ModelRequest, type ScriptedReply, say } from "pawl/agent";

const STEPS = ["Gather what is known", "Write the page", "Check the page", "Publish it"];

export function script(request: ModelRequest): ScriptedReply {
  const [system, ...conversation] = request.prompt;
  const instructions = typeof system?.content === "string" ? system.content : "";
  const [, topic = "birds"] = /Topic: ([^.]*)\./.exec(instructions) ?? [];
  const parts = conversation.flatMap(({ content }) => (typeof content === "string" ? [] : [...content]));
  const calls = parts.filter(({ type }) => type === "tool-call");
  const has = (name: string) => calls.some(({ toolName }) => toolName === name);

  if (!instructions.includes("Objective:") && !has("planning_setup_plan"))
    return callTools({ planning_setup_plan: { objective: `A field guide to ${topic}`, steps: STEPS } });
  const current = STEPS.findIndex((_, index) => !isDone(index + 1, instructions, calls)) + 1;
  if (current === 0) return say(`The field guide to ${topic} is published.`);
  const work = workOf(current, topic);
  if (!work.some((call) => has(Object.keys(call)[0] ?? ""))) return callTools(...work);
  return callTools({ planning_update_step: { id: current, status: "done" } }, ...workOf(current + 1, topic));
}

function workOf(step: number, topic: string): Readonly<Record<string, unknown>>[] {
  switch (step) {
    case 1:
      return [{ search: { source: "archive", topic } }, { search: { source: "journal", topic } }];
    case 2:
      return [{ write_page: { topic, text: `All about ${topic}.` } }];
    case 3:
      return [{ check_page: { topic } }];
    case 4:
      return [{ publish: { topic } }];
    default:
      return [];
  }
}

/** By what the prompt says of earlier work, or by what was said since. */
function isDone(step: number, instructions: string, calls: readonly ModelPart[]): boolean {
  const isMarked = calls.some(
    ({ toolName, input }) =>
      toolName === "planning_update_step" && JSON.stringify(input) === JSON.stringify({ id: step, status: "done" }),
  );
  return isMarked || instructions.includes(`✓ ${step}.`);
}
