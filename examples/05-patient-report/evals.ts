import { evalSetup } from "pawl/testing";
import { patientReport } from "./workflow.ts";

const written = { answer: ({ tool }: { tool: string }) => `${tool}: 20 signs` };

export const patientReportEvals = evalSetup({
  workflow: patientReport,
  input: { id: "p-4", physician: "dr-grace" },
  tools: {
    gather: { answer: ({ key }) => ({ source: key, notes: `notes of ${key}` }) },
    analyse: { output: "nothing unusual" },
    "write findings": written,
    "write assessment": written,
    "write plan": written,
    deliver: { output: { delivered: "report of 60 signs" } },
  },
});
