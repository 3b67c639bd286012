// An agent that searches, reads, publishes what it has found after somebody has agreed, and answers.
import { workflow } from "pawl";
import { DurableAgent } from "pawl/ai";
import { model } from "./model.ts";
import { tools } from "./tools.ts";

export const research = workflow({ name: "research", budget: { tokens: 50_000 } }, async (ctx, question: string) => {
  const agent = new DurableAgent(ctx, {
    model,
    instructions: "Search, read what you find, publish a summary, then answer with its address.",
    tools,
    effects: { search: "read", readPage: "read" },
    approvals: { approvers: ["role:editor"] },
  });
  const { text } = await agent.generate({ prompt: question });
  return text;
});
