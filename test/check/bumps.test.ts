import { describe, expect, it } from "vitest";
import { type BumpVerdict, bumpsOf } from "../../src/cli/check/bump.ts";
import { differencesFromRecord, differencesOf } from "../../src/cli/check/difference.ts";
import type { Workflow } from "../../src/core/workflow.ts";
import { machine, type Phase, phases, workflow } from "../../src/index.ts";
import * as fixtures from "../fixtures/check/definitions.ts";

const compared = (before: unknown, after: unknown) => bumpsOf([before as Workflow], [after as Workflow]);
const shown = ({ needed, given, ok, reasons, advice }: BumpVerdict) => ({
  needed,
  given,
  ok,
  why: reasons.map(({ what }) => what),
  advice,
});

describe("which bump a change needs", () => {
  it("S0-50 S0-51 S0-44 S0-45 S0-46 the fixtures for PATCH, MINOR and MAJOR get their verdict, with the reason", () => {
    const { before, patch, minor, gate, major } = fixtures;
    const verdicts = [before, patch, minor, gate, major].map((after) => shown(compared(before, after)[0]!));
    const ok = { ok: true, advice: null };
    expect(verdicts).toEqual([
      { needed: "none", given: "none", why: [], ...ok },
      {
        needed: "patch",
        given: "patch",
        why: ["code, wording or configuration was changed, and nothing of the structure"],
        ...ok,
      },
      { needed: "minor", given: "minor", why: ['step "compare" of phase "fix" was added'], ...ok },
      { needed: "minor", given: "minor", why: ['options of the `approve` of phase "review" changed'], ...ok },
      { needed: "major", given: "major", why: ['phase "announce" was added'], ...ok },
    ]);
  });

  it("S0-50 S0-48 a version that was not bumped enough is named, and the one that would do", () => {
    expect(shown(compared(fixtures.before, fixtures.unbumped)[0]!)).toMatchObject({
      needed: "major",
      given: "patch",
      ok: false,
      advice: "Make it 2.0.0.",
    });
    expect(shown(compared(fixtures.major, fixtures.before)[0]!)).toMatchObject({ ok: false });
  });

  it("S0-50 versions that are kept beside the newest must be what they were; what is gone or new is told", () => {
    const { before, major } = fixtures;
    const other = workflow({ name: "other", version: "1.0.0" }, () => 1) as Workflow;
    const kept = { ...fixtures.minor, version: "1.3.0" };
    const verdicts = bumpsOf([before as Workflow, other], [kept as Workflow, major as Workflow]);
    expect(verdicts.map(({ workflow: name, from, to, needed, ok }) => [name, from, to, needed, ok])).toEqual([
      ["bugfix", "1.3.0", "2.0.0", "major", true],
      ["bugfix", "1.3.0", "1.3.0", "minor", false],
      ["other", "1.0.0", null, "major", false],
    ]);
    expect(bumpsOf([], [other])[0]).toMatchObject({ from: null, to: "1.0.0", ok: true });
  });

  const needs = (before: unknown, after: unknown) =>
    differencesOf(before as Workflow, after as Workflow).map(({ needs: level, what }) => `${level}: ${what}`);

  const phase = (...list: readonly Phase[]) => phases({ name: "p", version: "1.0.0" }, list);
  const a: Phase = { name: "a", run: () => 1 };
  const b: Phase = { name: "b", run: () => 2 };
  const steps = (...names: readonly string[]): Phase => ({
    name: "s",
    steps: names.map((name) => ({ name, run: () => 3 })),
  });

  it.each([
    ["a phase that was removed", phase(a, b), phase(a), ['major: phase "b" was removed']],
    ["another order", phase(a, b), phase(b, a), ["major: routing: another order, b, a"]],
    [
      "a phase under a condition",
      phase(a, b),
      phase(a, { ...b, when: () => true }),
      ['major: routing: phase "b" is only on the way under a condition now'],
    ],
    [
      "a step that was removed",
      phase(steps("x", "y")),
      phase(steps("x")),
      ['major: step "y" of phase "s" was removed'],
    ],
    [
      "another deed",
      phase(a, b),
      phase(a, { name: "b", waitFor: "go" }),
      ['major: phase "b" is `waitFor` now, no longer `run`'],
    ],
    [
      "another signal",
      phase({ name: "b", waitFor: "go" }),
      phase({ name: "b", waitFor: "now" }),
      ['minor: options of the `waitFor` of phase "b" changed'],
    ],
    [
      "an output file and a condition",
      phase(b),
      phase({ ...b, output: "b.json", satisfied: () => false }),
      ['minor: output file of phase "b" changed', 'minor: whether phase "b" can be satisfied already changed'],
    ],
    ["a kind of step", phase(b), phase({ ...b, kind: "model" }), ['patch: kind of phase "b" changed']],
    [
      "phases instead of a function",
      workflow({ name: "p" }, () => 1),
      phase(a),
      ["major: it is made in another way: a function, phases or a machine"],
    ],
  ] as const)("S0-50 S0-44 S0-45 phases: %s", (_, before, after, expected) => {
    expect(needs(before, after)).toEqual(expected);
  });

  it("S0-50 S0-51 prompts and other templates that are pinned need a MINOR", () => {
    const using = (version: string) => workflow({ name: "w", uses: { prompts: { tone: version } } }, () => 1);
    expect(needs(using("3"), using("4"))).toEqual(["minor: it uses 4 of prompts.tone, no longer 3"]);
  });

  it("S0-50 of a plain function replay is the judge, and the verdict says so", () => {
    const plain = (word: string) => workflow({ name: "w", owner: word }, () => 1);
    expect(needs(plain("ann"), plain("ann"))).toEqual([]);
    expect(needs(plain("ann"), plain("bob"))).toEqual([
      "patch: its code or configuration was changed; whether it takes another way, only the replay of runs can tell",
    ]);
  });

  interface Machine {
    readonly ways?: readonly string[];
    readonly extra?: readonly string[];
    readonly can?: readonly ("complete" | "cancel")[];
    readonly approvers?: readonly string[];
    readonly start?: string;
    readonly onward?: readonly string[];
  }
  const made = ({
    ways = ["b"],
    extra = [],
    can = ["complete"],
    approvers = ["ann"],
    start = "a",
    onward = ["gate", "a"],
  }: Machine = {}) =>
    machine({ name: "m", version: "1.0.0", state: () => ({ n: 0 }) }, (({ step, approval }: never) => ({
      start,
      steps: Object.fromEntries([
        ["a", (step as (spec: object) => unknown)({ next: ways, run: () => null })],
        ["b", (step as (spec: object) => unknown)({ next: onward, run: () => null })],
        ["gate", (approval as (spec: object) => unknown)({ action: () => null, approvers, approved: "end" })],
        ["end", (step as (spec: object) => unknown)({ can, run: () => null })],
        ...extra.map((name) => [name, (step as (spec: object) => unknown)({ next: ["b"], run: () => null })]),
      ]),
    })) as never);

  it.each([
    ["a new step and the way to it", { ways: ["b", "x"], extra: ["x"] }, "minor"],
    ["a way between steps that were there", { ways: ["b", "end"] }, "major"],
    ["a way that is gone", { onward: ["gate"] }, "major"],
    ["another beginning", { start: "b" }, "major"],
    ["another word", { can: ["complete", "cancel"] }, "minor"],
    ["a word that is gone", { can: [] }, "major"],
    ["another option of a gate", { approvers: ["ann", "bob"] }, "minor"],
    ["nothing", {}, "none"],
  ] as const)("S0-50 S0-51 machines: %s", (_, change, expected) => {
    const [verdict] = compared(made(), made(change));
    expect(verdict).toMatchObject({ needed: expected });
  });

  it("S0-50 what a run has recorded tells of phases and steps, and of the rest that it is another", () => {
    const { before, minor, major, gate } = fixtures;
    const record = (one: typeof before) => ({
      structure: one.definition.structure,
      uses: one.definition.uses,
      outline: one.plan.outline,
    });
    const levels = [before, minor, major, gate].map((after) =>
      differencesFromRecord(record(before), after as Workflow).map(({ needs: level, what }) => `${level}: ${what}`),
    );
    expect(levels).toEqual([
      [],
      ['minor: step "compare" of phase "fix" was added'],
      ['major: phase "announce" was added'],
      ["minor: gates, routing or options of steps were changed, and runs do not record which"],
    ]);
  });
});
