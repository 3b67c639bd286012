// An agent that searches, reads, publishes what it has found after somebody has agreed, and answers.
import { ToolLoopAgent } from "ai";
import { model } from "./model.ts";
import { answerWith } from "./terminal.ts";
import { tools } from "./tools.ts";

export async function research(question: string): Promise<string> {
  const agent = new ToolLoopAgent({
    model,
    instructions: "Search, read what you find, publish a summary, then answer with its address.",
    tools,
  });
  const { text } = await answerWith(agent, question);
  return text;
}
