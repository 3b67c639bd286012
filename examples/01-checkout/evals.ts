import { evalSetup } from "pawl/testing";
import { checkout } from "./workflow.ts";

export const checkoutEvals = evalSetup({
  workflow: checkout,
  input: { id: "o-17", cents: 4200, email: "ada@example.org" },
  tools: {
    charge: { output: { payment: "pay-o-17", cents: 4200 } },
    receipt: { output: { to: "ada@example.org", text: "" } },
  },
});
