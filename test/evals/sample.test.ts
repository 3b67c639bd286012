import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { refundEvals } from "../../examples/04-refund/evals.ts";
import { parseEvalCase } from "../../src/testing/evals/read-case.ts";
import { runEval } from "../../src/testing/evals/run-eval.ts";

const FILE = new URL("../../examples/04-refund/evals/approval_timeout_after_refund_draft.json", import.meta.url);
const sample = parseEvalCase(readFileSync(FILE, "utf8"));

it("S2-84 S2-85 S2-114 D-3 C-14 the sample case runs as it stands, and passes", async () => {
  const result = await runEval(sample, [refundEvals]);
  expect(result).toMatchObject({
    ok: true,
    broken: [],
    workflow: "refund",
    status: ["waiting", "escalated"],
    did: ["draft", "review"],
  });
  expect(result.tookMs).toBe(36 * 3_600_000);
});
