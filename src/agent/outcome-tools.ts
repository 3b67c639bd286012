// Tools that end an agent's work
// How a model says that it will not, does not know, or needs a person. They are never run: to call one is the outcome.
import type { Tool } from "./tool.ts";

function ending(name: string, ends: NonNullable<Tool["ends"]>, description: string): Tool {
  const jsonSchema = {
    type: "object",
    properties: { reason: { type: "string", description: "Why, for the person who reads it." } },
    required: ["reason"],
    additionalProperties: false,
  };
  const run = () => ({ message: "The work has ended.", success: false });
  return Object.freeze<Tool>({ name, description, class: "read", input: { jsonSchema }, jsonSchema, ends, run });
}

/** The tools that every agent has, unless it says otherwise. */
export const OUTCOME_TOOLS: readonly Tool[] = Object.freeze([
  ending("agent_refuse", "refusal", "Ends the work: it must not or should not be done. Say why."),
  ending(
    "agent_unsure",
    "uncertain",
    "Ends the work: you are not sure of the result, or evidence is missing. Say what is missing.",
  ),
  ending("agent_escalate", "escalation", "Ends the work: a person has to decide or to look at it. Say what about."),
]);
