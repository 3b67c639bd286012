import { evalSetup } from "pawl/testing";
import { refund } from "./workflow.ts";

/** What the cases in `evals/` need to know of the refund. */
export const refundEvals = evalSetup({
  workflow: refund,
  input: { order: "o-17", cents: 4200, email: "ada@example.org", agent: "bot-1" },
  tools: {
    draft: { output: { draft: "draft-o-17", cents: 4200 } },
    review: { output: { risk: "medium", finding: "order o-17 was paid" } },
    issue: { output: { payment: "refund-o-17", cents: 4200 } },
    tell: { output: { to: "ada@example.org", text: "" } },
  },
});
