import { workflow } from "pawl";
import { clinic, type Patient } from "../fakes.ts";

const SOURCES = ["history", "laboratory", "imaging", "medication"] as const;
const PHASES = ["findings", "assessment", "plan"] as const;

export const patientReport = workflow(
  { name: "patient-report", deadline: "14 days" },
  async (ctx, patient: Patient) => {
    const gathered = await ctx.map(
      SOURCES,
      (source) =>
        ctx.step("gather", ({ key, signal }) => clinic.gather(patient.id, source, key, signal), { timeout: "1h" }),
      { concurrency: 2 },
    );
    const analysis = await ctx.step("analyse", ({ key }) => clinic.analyse(gathered, key), {
      kind: "model",
      timeout: "1h",
    });

    const parts: string[] = [];
    for (const phase of PHASES) {
      parts.push(
        await ctx.step(`write ${phase}`, ({ key }) => clinic.write(phase, analysis, key), {
          kind: "model",
          timeout: "1h",
        }),
      );
    }
    const report = parts.join("\n");

    const action = { tool: "clinic.deliver", arguments: { patient: patient.id, report } };
    const approval = await ctx.approve("report", {
      action,
      approvers: [patient.physician],
      evidence: { analysis },
      risk: "high",
      timeout: "48h",
      remind: "12h",
      escalate: [
        { after: "24h", action: "notify", notify: [patient.physician, "role:ward"] },
        { after: "48h", action: "escalate", to: ["role:department-head"] },
      ],
      onExpired: "escalate",
    });

    await ctx.effect("deliver", {
      class: "execute",
      needs: { approval, action },
      do: ({ key }) => clinic.deliver(patient.id, report, key),
      detect: ({ key }) => clinic.delivered(key),
    });
    return { patient: patient.id, approvedBy: approval.by };
  },
);
