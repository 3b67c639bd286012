import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { reportEvals } from "../../examples/03-report/evals.ts";
import { refundEvals } from "../../examples/04-refund/evals.ts";
import { workflow } from "../../src/core/workflow.ts";
import { EVAL_CASE_SCHEMA } from "../../src/testing/evals/case-schema.ts";
import { evalSetup } from "../../src/testing/evals/eval-setup.ts";
import {
  type EvalCase,
  type EvalExpectations,
  parseEvalCase,
  readEvalCase,
} from "../../src/testing/evals/read-case.ts";
import { runEval } from "../../src/testing/evals/run-eval.ts";
import { errorOf } from "../behaviour/harness.ts";
import { withoutColdStart } from "../cold-start.ts";

const read = (example: string, name: string) =>
  parseEvalCase(readFileSync(new URL(`../../examples/${example}/evals/${name}.json`, import.meta.url), "utf8"));

const sample = read("04-refund", "approval_timeout_after_refund_draft");
const approved = read("04-refund", "approved");

/** The names of what does not hold. */
async function brokenBy(one: EvalCase, expected: EvalExpectations, setups = [refundEvals]): Promise<string[]> {
  const { broken } = await runEval({ ...one, expected: { ...one.expected, ...expected } }, setups);
  return broken.map(({ expectation }) => expectation);
}

describe("an expectation that is broken on purpose fails by its name", () => {
  it.each<[string, EvalCase, EvalExpectations]>([
    ["final_status", sample, { final_status: "succeeded_or_failed" }],
    ["final_status", approved, { final_status: ["waiting", "parked"] }],
    ["requires_checkpoint", sample, { requires_checkpoint: ["issue"] }],
    ["required_trace_events", sample, { required_trace_events: ["approval_granted"] }],
    ["must_not_issue_refund", approved, { must_not_issue_refund: true }],
    ["must_not", approved, { must_not: ["tell"] }],
    ["must_not_end_as", approved, { must_not_end_as: { status: "succeeded", output: { approvedBy: "grace" } } }],
    ["output", approved, { output: { approvedBy: "linus" } }],
    ["effects", approved, { effects: { issue: "compensated" } }],
    ["stop_reason", approved, { stop_reason: "cancelled" }],
    ["replays", approved, { replays: false }],
  ])("S2-84 %s", async (name, one, expected) => {
    expect(await brokenBy(one, expected)).toEqual([name]);
  });

  it("S2-84 initial_step, and events that nothing asks for, are named with what was called instead", async () => {
    const result = await runEval({ ...approved, initial_step: "teleport" }, [refundEvals]);
    expect(result.broken[0]).toMatchObject({ expectation: "initial_step", expected: "teleport" });
    const never = { ...approved, events: [...approved.events, { type: "tool_success", tool: "teleport" } as const] };
    const [broken] = (await runEval(never, [refundEvals])).broken;
    expect(broken).toMatchObject({ expectation: "events", expected: "teleport" });
    expect(broken?.message).toContain("Its calls were: draft, review, issue, tell.");
  });

  it("S2-84 a call that nothing answers is named, and what to add", async () => {
    const { tools: _, ...bare } = refundEvals;
    const { broken } = await runEval({ ...sample, events: [] }, [bare]);
    expect(broken.map(({ expectation }) => expectation)).toContain("events");
    expect(broken.map(({ message }) => message).join()).toContain('Nothing says what "draft" answers.');
  });

  it("S2-83 effects_once: an effect that nothing guards and that happens twice is a fault of every case", async () => {
    const twice = workflow("twice", async (ctx) => {
      await ctx.effect("pay", { do: () => 1, key: "order-1" });
      await ctx.effect("pay", { do: () => 1, key: "order-1" });
    });
    const one: EvalCase = { case_id: "twice", events: [], expected: { effects: { pay: "executed" } } };
    const setup = evalSetup({ workflow: twice, tools: { pay: { output: 1 } } });
    expect(await brokenBy(one, {}, [setup])).toEqual(["effects_once"]);
  });
});

describe("events", () => {
  it("S2-84 S2-81 a cancel with compensate takes back what was done, and a crash in the middle changes nothing", async () => {
    const events: EvalCase["events"] = [
      { type: "crash", tool: "draft" },
      { type: "tool_success", tool: "draft" },
      { type: "cancel", compensate: true, reason: "fraud" },
    ];
    const expected = {
      final_status: "cancelled",
      effects: { draft: "compensated", issue: "absent" },
      must_not_issue_refund: true,
    };
    const result = await runEval({ case_id: "fraud", events, expected }, [refundEvals]);
    expect(result).toMatchObject({ ok: true, broken: [], did: ["draft", "review", "draft/undo"] });
  });

  it("S2-84 time passes, signals come twice, versions are deployed; a failure is retried and one is not", async () => {
    const slow = workflow({ name: "slow", version: "1.2.3" }, async (ctx) => {
      const first = await ctx.step("fetch", () => 0);
      await ctx.sleep("3 days");
      const { go } = await ctx.waitFor<{ go: boolean }>("go");
      const second = await ctx.step("store", () => 0);
      return { first, second, go };
    });
    const setup = evalSetup({ workflow: slow });
    const events: EvalCase["events"] = [
      { type: "tool_failure", tool: "fetch", retryable: true, times: 2 },
      { type: "tool_success", tool: "fetch", output: 4 },
      { type: "time_passes", time: "2 days" },
      { type: "deploy" },
      { type: "time_passes", time: "1 day" },
      { type: "signal", name: "go", payload: { go: true } },
      { type: "duplicate_event" },
      { type: "tool_success", tool: "store", output: 5 },
      { type: "duplicate_event", of: "start" },
    ];
    const trace = ["tool_failure", "retry", "timer_fired", "deploy", "signal"];
    const expected = {
      final_status: "succeeded",
      output: { first: 4, second: 5, go: true },
      required_trace_events: trace,
    };
    const one: EvalCase = { case_id: "slow", events, expected };
    expect((await runEval(one, [setup])).broken).toEqual([]);
    const fatal: EvalCase = {
      ...one,
      events: [{ type: "tool_failure", tool: "fetch", kind: "fatal", error: "no such thing" }],
      expected: { final_status: "failed", must_not: ["store"] },
    };
    expect((await runEval(fatal, [setup])).broken).toEqual([]);
    const wrong = await runEval({ ...fatal, expected: { final_status: "succeeded" } }, [setup]);
    expect(wrong.broken[0]?.message).toContain("no such thing");
  });

  it("S2-84 a crash in an effect that nothing guards parks the run, until the case says what a person found", async () => {
    const risky = workflow("risky", async (ctx) => ctx.effect("wire", { class: "execute", do: () => "sent" }));
    const setup = evalSetup({ workflow: risky, tools: { wire: { output: "sent" } } });
    const crash: EvalCase = {
      case_id: "risky",
      events: [{ type: "crash", tool: "wire" }],
      expected: { final_status: "parked", effects: { wire: "unknown" } },
    };
    expect((await runEval(crash, [setup])).broken).toEqual([]);
    const events = [...crash.events, { type: "resolve", choice: "happened", value: "seen", step: "wire" } as const];
    const resolved = { ...crash, events, expected: { final_status: "succeeded", output: "seen" } };
    expect((await runEval(resolved, [setup])).broken).toEqual([]);
  });
});

describe("reading cases", () => {
  const base = { case_id: "c", events: [], expected: {} };

  it.each<[string, unknown, string]>([
    ["the case", 7, "The case is 7. Give an object."],
    ["a field", { events: [], expected: {} }, "case_id is missing. Give a value for it."],
    ["a name", { ...base, expekted: {} }, "expekted is not known. Give one of $schema, case_id,"],
    [
      "an event",
      { ...base, events: [{ type: "tool_sucess", tool: "a" }] },
      'events[0].type is "tool_sucess". Give one of tool_success, tool_failure,',
    ],
    ["a part of an event", { ...base, events: [{ type: "signal" }] }, "events[0].name is missing."],
    [
      "a status",
      { ...base, expected: { final_status: "done" } },
      'expected.final_status is "done". Give one of running, waiting,',
    ],
    [
      "a trace event",
      { ...base, expected: { required_trace_events: ["tea"] } },
      'expected.required_trace_events[0] is "tea". Give one of',
    ],
    ["a flag", { ...base, expected: { must_not_pay: "yes" } }, 'expected.must_not_pay is "yes". Give a boolean.'],
    ["a repetition of nothing", { ...base, events: [{ type: "duplicate_event" }] }, "events[0] repeats nothing."],
  ])("S2-84 %s that is wrong is named by its path, with what is allowed", (_what, value, message) => {
    expect(() => readEvalCase(value)).toThrow(message);
  });

  it("S2-84 the published schema is the one that cases are read by", () => {
    const file = new URL("../../docs/reference/eval-case.schema.json", import.meta.url);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(JSON.parse(JSON.stringify(EVAL_CASE_SCHEMA)));
  });

  it("S2-84 a flag that means nothing known, and a case that may be about several workflows, are refused", async () => {
    withoutColdStart("nothing is started");
    const flag = await errorOf(runEval({ ...sample, expected: { must_not_launch_rocket: true } }, [refundEvals]));
    expect(flag.message).toContain('expected.must_not_launch_rocket means nothing that is known of workflow "refund".');
    const which = await errorOf(runEval(sample, [refundEvals, reportEvals]));
    expect(which.message).toContain('Give it "workflow": one of refund, report.');
    const none = await errorOf(runEval({ ...sample, workflow: "loan" }, [refundEvals]));
    expect(none).toMatchObject({ code: "unknown_workflow" });
    expect((await runEval({ ...sample, workflow: "refund" }, [refundEvals, reportEvals])).ok).toBe(true);
  });
});
