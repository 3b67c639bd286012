// Approvals, as a program asks for them that has no engine: at its terminal, while it runs. If it dies before the answer, all is lost.
import { stdin, stdout } from "node:process";
import { createInterface } from "node:readline/promises";
import type { ModelMessage, ToolLoopAgent, ToolSet } from "ai";

/** Who is asked; a test answers by itself. */
export const terminal = {
  async question(text: string): Promise<string> {
    const lines = createInterface({ input: stdin, output: stdout });
    const answer = await lines.question(text);
    lines.close();
    return answer;
  },
};

/** Lets the agent work until it has an answer, and asks whenever one of its tools needs leave. */
export async function answerWith<T extends ToolSet>(agent: ToolLoopAgent<never, T>, question: string): Promise<Answer> {
  const messages: ModelMessage[] = [{ role: "user", content: question }];
  for (;;) {
    const result = await agent.generate({ messages });
    const requests = result.content.filter((part) => part.type === "tool-approval-request");
    if (requests.length === 0) return result;
    messages.push(...saidIn(result));
    for (const { approvalId, toolCall } of requests) {
      const answer = await terminal.question(`${toolCall.toolName} ${JSON.stringify(toolCall.input)}? (yes/no) `);
      const response = { type: "tool-approval-response", approvalId, approved: answer === "yes" } as const;
      messages.push({ role: "tool", content: [response] });
    }
  }
}

/** All that was said in a call; ai 6 has it in another place than ai 7. */
function saidIn({ responseMessages, response }: Said): readonly ModelMessage[] {
  return responseMessages ?? response.messages ?? [];
}

interface Said {
  readonly responseMessages?: readonly ModelMessage[];
  readonly response: { readonly messages?: readonly ModelMessage[] };
}

interface Answer {
  readonly text: string;
}
