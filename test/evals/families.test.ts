import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { checkoutEvals } from "../../examples/01-checkout/evals.ts";
import { invoicesEvals } from "../../examples/02-batch/evals.ts";
import { reportEvals } from "../../examples/03-report/evals.ts";
import { refundEvals } from "../../examples/04-refund/evals.ts";
import { patientReportEvals } from "../../examples/05-patient-report/evals.ts";
import { EVAL_FAMILIES, type EvalFamily, evalFamilies } from "../../src/testing/evals/families.ts";
import { parseEvalCase } from "../../src/testing/evals/read-case.ts";
import { runEval } from "../../src/testing/evals/run-eval.ts";

const EXAMPLES = [
  ["01-checkout", "paid", checkoutEvals],
  ["02-batch", "three_invoices", invoicesEvals],
  ["03-report", "reviewed", reportEvals],
  ["04-refund", "approved", refundEvals],
  ["05-patient-report", "delivered", patientReportEvals],
] as const;

const read = (example: string, name: string) =>
  parseEvalCase(readFileSync(new URL(`../../examples/${example}/evals/${name}.json`, import.meta.url), "utf8"));

/** How many cases of each family there must be at least. */
const LEAST: Readonly<Partial<Record<EvalFamily, number>>> = {
  restart: 3,
  duplicate: 2,
  failure: 4,
  replay: 1,
  audit: 1,
};

describe.each(EXAMPLES)("the families of example %s", (example, name, setup) => {
  it("S2-76 S2-77 S2-78 S2-79 S2-80 S2-81 S2-82 S2-83 hold", async () => {
    const cases = await evalFamilies(read(example, name), [setup]);
    const counts = Object.fromEntries(
      EVAL_FAMILIES.map((family) => [family, cases.filter((one) => one.family === family).length]),
    );
    for (const [family, least] of Object.entries(LEAST)) expect(counts[family], family).toBeGreaterThanOrEqual(least);
    const results = [];
    for (const one of cases) results.push(await runEval(one.case, [setup]));
    const broken = results
      .filter(({ ok }) => !ok)
      .map(
        ({ case_id: id, broken: what }) =>
          `${id}: ${what.map((one) => `${one.expectation} ${one.message}`).join("; ")}`,
      );
    expect(broken).toEqual([]);
  });
});
