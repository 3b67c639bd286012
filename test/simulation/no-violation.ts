import { describeScenario, type SimulationReport } from "../../src/testing/index.ts";

/** Throws with all that is needed to look at it again. */
export function expectNoViolation({ scenario, violation }: SimulationReport): void {
  if (violation === null) return;
  throw new Error(
    `${violation.invariant}: ${violation.what}\n${describeScenario(scenario)}\nnpm run simulate -- --seed ${scenario.seed} --shrink`,
  );
}
