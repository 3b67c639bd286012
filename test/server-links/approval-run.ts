// A workflow that asks for one approval, and what is known of it once it waits.
import type { ApprovalSummary } from "../../src/client/approvals.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { PawlOptions } from "../../src/client/pawl-options.ts";
import type { ApproveOptions } from "../../src/core/approval.ts";
import { type Workflow, workflow } from "../../src/core/workflow.ts";
import type { World } from "../behaviour/harness.ts";

export const ACTION = { tool: "reports.deliver", arguments: { patient: "p-7", pages: 3 }, resources: ["report-7"] };

/** Asks, and gives back what was decided. */
export function asking(options: Partial<ApproveOptions> = {}): Workflow<void, unknown> {
  return workflow("report", (ctx) =>
    ctx.approve("release", {
      action: ACTION,
      approvers: ["ann", "role:physician"],
      timeout: "2h",
      onDenied: "branch",
      ...options,
    }),
  );
}

export interface Asked {
  readonly pawl: Pawl;
  readonly flow: Workflow<void, unknown>;
  readonly approval: ApprovalSummary;
}

/** An engine with a run that waits for a decision. */
export async function asked(
  world: World,
  options: Partial<ApproveOptions> = {},
  engine: PawlOptions = {},
): Promise<Asked> {
  const flow = asking(options);
  const pawl = await world.open([flow], engine);
  await pawl.start(flow, undefined, { id: "r" });
  await world.settle();
  const [approval] = (await pawl.approvals.list()).approvals;
  if (approval === undefined) throw new Error("the run asks for an approval");
  return { pawl, flow, approval };
}
