// The agent's tools: plain AI SDK, the same before and after.
import { tool } from "ai";
import { z } from "zod";
import { web } from "../fakes.ts";

export const tools = {
  search: tool({
    description: "Finds pages about something.",
    inputSchema: z.object({ query: z.string() }),
    execute: ({ query }, { toolCallId }) => web.search(query, toolCallId),
  }),
  readPage: tool({
    description: "Reads one page.",
    inputSchema: z.object({ url: z.string() }),
    execute: ({ url }, { toolCallId }) => web.read(url, toolCallId),
  }),
  publish: tool({
    description: "Publishes a text and gives its address.",
    inputSchema: z.object({ title: z.string(), text: z.string() }),
    needsApproval: true,
    execute: ({ title, text }, { toolCallId }) => web.publish(title, text, toolCallId),
  }),
};
