import { crashEverywhere } from "pawl/testing";
import { expect, it } from "vitest";
import { smallWorkflows } from "./small-workflows.ts";

it.each(smallWorkflows)(
  "S4-16 I5 I6 I8 I10 $name: all points, all modes, the same end and the same effects",
  async (one) => {
    const report = await crashEverywhere(one.workflow, one.input, one.options);
    expect(report.outcome).toMatch(one.ends);
    expect(report.toString()).toMatch(/^ok: /);
    expect([report.failures, report.isComplete]).toEqual([[], true]);
    expect(report.explored).toBeGreaterThan(0);
  },
);
