import { evalSetup } from "pawl/testing";
import { invoices } from "./workflow.ts";

export const invoicesEvals = evalSetup({
  workflow: invoices,
  input: { month: "2026-03", customers: 3 },
  tools: {
    customers: { output: ["ada", "grace", "edsger"] },
    invoice: { answer: ({ key }) => ({ invoice: key, cents: 100 }) },
  },
});
