import { describe, expect, it } from "vitest";
import { type Playbook, playbookWorkflow, readPlaybook } from "./playbook.ts";

const STEP = { name: "write", instructions: "Write it." };
const GATE = { question: "May it go out?", approvers: ["ann"] };
const GOOD = { name: "notes", version: "1.0.0", phases: [STEP] };

function withPhase(phase: object): object {
  return { ...GOOD, phases: [phase] };
}

const WRONG: readonly (readonly [path: string, value: unknown, wanted: string])[] = [
  ["", [GOOD], "an object with name, version"],
  ["name", { ...GOOD, name: "a/b" }, "a name such as"],
  ["version", { ...GOOD, version: 1 }, 'a version such as "1.0.0"'],
  ["version", { name: "notes", phases: [STEP] }, "is missing"],
  ["deadline", { ...GOOD, deadline: "soon" }, 'a duration such as "2h"'],
  ["correlation", { ...GOOD, correlation: 7 }, "the name of a field"],
  ["phases", { ...GOOD, phases: [] }, "a list of at least one phase"],
  ["phases[0]", { ...GOOD, phases: ["write"] }, "an object with name, instructions"],
  ["phases[0].name", withPhase({ ...STEP, name: "a.b" }), 'letters, digits, "_" and "-"'],
  ["phases[0].name", withPhase({ ...STEP, name: "__proto__" }), 'letters, digits, "_" and "-"'],
  ["phases[1].name", { ...GOOD, phases: [STEP, STEP] }, "phases[0].name has it already"],
  [
    "phases[0].instruction",
    withPhase({ name: "a", instruction: "x" }),
    "Allowed there: name, instructions, outputs, gate, steps",
  ],
  ["phases[0]", withPhase({ name: "a" }), "`instructions` (work) or `gate`"],
  ["phases[0]", withPhase({ ...STEP, gate: GATE }), "one of the two"],
  ["phases[0].instructions", withPhase({ name: "a", instructions: " " }), "text that is not empty"],
  ["phases[0].outputs", withPhase({ ...STEP, outputs: "x.md" }), "a list of file names"],
  ["phases[0].outputs[0]", withPhase({ ...STEP, outputs: ["../x.md"] }), "a relative file name"],
  ["phases[0].outputs[1]", withPhase({ ...STEP, outputs: ["x.md", "X.md"] }), "phases[0].outputs[0] has it already"],
  ["phases[0].outputs", withPhase({ name: "a", gate: GATE, outputs: ["x.md"] }), "a gate leaves no files"],
  ["phases[0].gate", withPhase({ name: "a", steps: [STEP], gate: GATE }), "one of the steps"],
  ["phases[0].steps", withPhase({ name: "a", steps: [] }), "a list of at least one step"],
  [
    "phases[0].steps[0].steps",
    withPhase({ name: "a", steps: [{ ...STEP, steps: [] }] }),
    "Allowed there: name, instructions",
  ],
  ["phases[0].gate.question", withPhase({ name: "a", gate: { approvers: ["ann"] } }), "what is to be decided"],
  ["phases[0].gate.approvers", withPhase({ name: "a", gate: { question: "?" } }), "at least one person"],
  ["phases[0].gate.approvers[0]", withPhase({ name: "a", gate: { ...GATE, approvers: ["policy"] } }), "a person"],
  ["phases[0].gate.quorum", withPhase({ name: "a", gate: { ...GATE, quorum: 2 } }), "from 1 to 1"],
  [
    "phases[0].gate.risk",
    withPhase({ name: "a", gate: { ...GATE, risk: "huge" } }),
    "one of low, medium, high, critical",
  ],
  ["phases[0].gate.timeout", withPhase({ name: "a", gate: { ...GATE, timeout: {} } }), "a duration"],
  ["phases[0].gate.remind", withPhase({ name: "a", gate: { ...GATE, remind: "1s" } }), "at least"],
  [
    "phases[0].gate.autoApprove",
    withPhase({ name: "a", gate: { ...GATE, autoApprove: true } }),
    "Allowed there: question",
  ],
];

describe("playbooks", () => {
  it.each(WRONG)("what is wrong is named by its path: %s", (path, value, wanted) => {
    expect(() => readPlaybook(value, "notes.yaml")).toThrow(
      expect.objectContaining({
        code: "invalid_playbook",
        message: expect.stringContaining(wanted),
        fields: expect.objectContaining({ file: "notes.yaml", path }),
      }),
    );
  });

  it("S0-48 S0-51 steps, files and gates are the structure; words are not", () => {
    const structure = (playbook: object) => playbookWorkflow(playbook as Playbook).definition.structure;
    const gated = (gate: object) => structure({ ...GOOD, phases: [STEP, { name: "review", gate }] });
    expect(structure(withPhase({ ...STEP, instructions: "Write it well." }))).toBe(structure(GOOD));
    expect(structure(withPhase({ ...STEP, outputs: ["x.md"] }))).not.toBe(structure(GOOD));
    expect(structure({ ...GOOD, phases: [STEP, { ...STEP, name: "b" }] })).not.toBe(structure(GOOD));
    expect(gated({ ...GATE, approvers: ["bob"] })).not.toBe(gated(GATE));
    expect(gated(GATE)).not.toBe(structure(GOOD));
  });
});
