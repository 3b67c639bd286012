import { describe, expect, it } from "vitest";
import { workflow } from "../core/workflow.ts";
import type { Phase } from "./phase-spec.ts";
import { phases } from "./phases.ts";

const run = () => 1;
const child = workflow("child", async () => 1);
const make = (list: unknown, options = {}) => phases({ name: "w", ...options }, list as Phase[]);

describe("a definition of phases", () => {
  it.each<[string, unknown]>([
    ["at least one phase", []],
    ["at least one phase", "phases"],
    ["letters, digits", [{ name: "a.b", run }]],
    ["letters, digits", [{ run }]],
    ["letters, digits", [{ name: "__proto__", run }]],
    ["letters, digits", [{ name: "a", steps: [{ name: "__proto__", run }] }]],
    ["nothing to do. Give exactly one of run, effect, approve, manual, sleep, waitFor, call", [{ name: "a" }]],
    ["run and sleep", [{ name: "a", run, sleep: "1h" }]],
    ["`run` is a function", [{ name: "a", run: "no" }]],
    ["`when` is a function", [{ name: "a", when: true, run }]],
    ["`effect` is an object", [{ name: "a", effect: "no" }]],
    ["`approve` is an object", [{ name: "a", approve: null }]],
    ["needs `instructions`", [{ name: "a", manual: {} }]],
    ["relative file names", [{ name: "a", manual: { instructions: "do", outputs: ["../x"] } }]],
    ["a duration", [{ name: "a", sleep: {} }]],
    ["name of a signal", [{ name: "a", waitFor: {} }]],
    ["`call` is a workflow", [{ name: "a", call: "child" }]],
    ["`input` goes with `call`", [{ name: "a", run, input: 1 }]],
    ["`output` goes with `run`", [{ name: "a", sleep: "1h", output: "a.json" }]],
    ["`output` is a relative file name", [{ name: "a", run, output: "/etc/passwd" }]],
    ["`retry` goes with `run` and `effect`", [{ name: "a", waitFor: "s", retry: false }]],
    ["`satisfied` is a function", [{ name: "a", run, satisfied: true }]],
    ["at least one step", [{ name: "a", steps: [] }]],
    ["so `run` belongs to one of them", [{ name: "a", run, steps: [{ name: "b", run }] }]],
    [
      "is there twice",
      [
        { name: "a", run },
        { name: "a", run },
      ],
    ],
    [
      "is there twice",
      [
        {
          name: "a",
          steps: [
            { name: "b", run },
            { name: "b", run },
          ],
        },
      ],
    ],
    [
      "as another one does",
      [
        { name: "a", run, output: "x.json" },
        { name: "b", run, output: "X.json" },
      ],
    ],
  ])("S2-14 is refused where it is wrong: %s", (what, list) => {
    expect(() => make(list)).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(what) }),
    );
  });

  it("S0-51 S0-48 its structure changes with phases, steps, kinds, routing, gates and their options, and with nothing else", () => {
    const gate = { approvers: ["ann"], action: () => ({ tool: "t", arguments: 1 }) };
    const base = [
      { name: "a", run, output: "a.json" },
      {
        name: "b",
        steps: [
          { name: "c", run },
          { name: "g", approve: gate },
          { name: "s", waitFor: "go" },
        ],
      },
      { name: "d", call: child },
    ];
    const hash = (list: unknown, options = {}) => make(list, options).definition.structure;
    const same = hash(base);
    expect(hash(copyOf(base))).toBe(same);
    const [a, b, d] = base as [object, { name: string; steps: object[] }, object];
    const unlike: unknown[] = [
      [a, b],
      [b, a, d],
      [{ ...a, name: "z" }, b, d],
      [{ ...a, output: "z.json" }, b, d],
      [{ ...a, when: () => true }, b, d],
      [{ ...a, kind: "model" }, b, d],
      [{ ...a, satisfied: () => true }, b, d],
      [a, { ...b, steps: b.steps.slice(1) }, d],
      [a, { ...b, steps: [b.steps[0], { name: "g", approve: { ...gate, quorum: 2 } }, b.steps[2]] }, d],
      [a, { ...b, steps: [b.steps[0], b.steps[1], { name: "s", waitFor: "stop" }] }, d],
      [a, b, { name: "d", sleep: "1h" }],
    ];
    const hashes = unlike.map((list) => hash(list));
    expect(hashes).not.toContain(same);
    expect(new Set(hashes).size).toBe(unlike.length);
    expect(hash(base, { uses: { prompts: { p: "2" } } })).not.toBe(same);
    const configured = [{ ...a, timeout: "1h", retry: false }, b, d];
    expect(hash(configured, { retry: { max: 9 }, owner: "ann" })).toBe(same);
  });
});

/** The same values in other objects, their functions included. */
function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf);
  if (typeof value !== "object" || value === null || "definition" in value) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, copyOf(one)]));
}
