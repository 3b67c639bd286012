import { evalSetup } from "pawl/testing";
import { report } from "./workflow.ts";

const found = { answer: ({ tool }: { tool: string }) => ({ source: tool, found: 12 }) };

export const reportEvals = evalSetup({
  workflow: report,
  input: { topic: "tides", to: "ada@example.org" },
  tools: {
    "search journals": found,
    "search patents": found,
    "search interviews": found,
    "search press": found,
    analyse: { output: { title: "All about tides", sources: 48 } },
    deliver: { output: { to: "ada@example.org", text: "" } },
  },
});
