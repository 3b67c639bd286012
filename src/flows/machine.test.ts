import { describe, expect, it } from "vitest";
import { machine } from "./machine.ts";
import type { Steps } from "./machine-step.ts";

type Make = Steps<{ n: number }>;
/** Definitions that types would refuse as well. */
const define = (given: (make: Make) => unknown, options: object = {}) =>
  machine({ name: "m", state: (n: number) => ({ n }), ...options }, given as never);

const done = ({ step }: Make) => step({ can: ["complete"], run: () => ({ transition: "complete", output: 1 }) });
const to = ({ step }: Make, ...next: string[]) =>
  step({ next, run: () => ({ transition: "continue", next: next[0] ?? "" }) });
const ask = ({ approval }: Make, approved: string) =>
  approval({ action: () => ({ tool: "t", arguments: 1 }), approvers: ["ann"], approved });

describe("a definition", () => {
  it.each<[string, (make: Make) => unknown, string, RegExp]>([
    ["no steps", () => ({ start: "a" }), "steps", /no steps/],
    ["no start", (make) => ({ start: "b", steps: { a: done(make) } }), "start", /starts with "b".*steps: a/],
    ["a step of its own make", () => ({ start: "a", steps: { a: () => 1 } }), "steps.a", /step\(\{ run \}\)/],
    [
      "an unknown next step",
      (make) => ({ start: "a", steps: { a: to(make, "b") } }),
      "steps.a",
      /"b".*none of its steps: a/,
    ],
    [
      "a step that nothing leads to",
      (make) => ({ start: "a", steps: { a: done(make), b: done(make) } }),
      "steps",
      /nothing leads to: b/,
    ],
    [
      "a step without a function",
      ({ step }) => ({ start: "a", steps: { a: step({} as never) } }),
      "steps.a.run",
      /`run`/,
    ],
    [
      "an effect that decides nothing",
      ({ effect }) => ({ start: "a", steps: { a: effect({ do: () => 1 } as never) } }),
      "steps.a.decide",
      /`decide`/,
    ],
    [
      "a word that nobody knows",
      ({ step }) => ({ start: "a", steps: { a: step({ can: ["dance" as never], run: () => ({}) as never }) } }),
      "steps.a.can",
      /cannot "dance".*complete/,
    ],
    [
      "a retry of what was done",
      ({ effect }) => ({
        start: "a",
        steps: { a: effect({ can: ["retry" as never], do: () => 1, decide: () => ({}) as never }) },
      }),
      "steps.a.can",
      /cannot "retry"/,
    ],
    [
      "a wait for an approval that nobody asks for",
      ({ step, ...make }) => ({
        start: "a",
        steps: {
          a: step({ next: ["b"], can: ["wait_for_approval"], run: () => ({}) as never }),
          b: done({ step, ...make }),
        },
      }),
      "steps.a.next",
      /no step of its `next` asks/,
    ],
    [
      "a gate that is none",
      (make) => ({
        start: "a",
        steps: {
          a: make.effect({
            next: ["b"],
            needs: "b",
            do: () => 1,
            decide: () => ({ transition: "continue", next: "b" }),
          }),
          b: done(make),
        },
      }),
      "steps.a.needs",
      /"b", which is no step that asks/,
    ],
    [
      "an escalation to nobody",
      ({ step }) => ({ start: "a", steps: { a: step({ can: ["escalate"], run: () => ({}) as never }) } }),
      "escalation",
      /can escalate.*escalation: \{ approvers \}/,
    ],
    [
      "an agent that may not propose",
      ({ agent }) => ({
        start: "a",
        steps: { a: agent({ proposals: 0, run: () => ({}) as never, decide: () => ({}) as never }) },
      }),
      "steps.a.proposals",
      /at least 1/,
    ],
    [
      "one branch",
      (make) => ({
        start: "a",
        steps: { a: make.parallel({ branches: ["b"], next: "c" }), b: to(make, "c"), c: done(make) },
      }),
      "steps.a.branches",
      /at least two/,
    ],
    [
      "a branch that goes elsewhere",
      (make) => ({
        start: "a",
        steps: {
          a: make.parallel({ branches: ["b", "c"], next: "d" }),
          b: to(make, "d"),
          c: to(make, "d", "b"),
          d: done(make),
        },
      }),
      "steps.c",
      /branch of "a"/,
    ],
  ])("S2-40 S2-71 with %s is refused when it is made", (_, given, field, message) => {
    expect(() => define(given)).toThrow(
      expect.objectContaining({ code: "invalid_argument", fields: { machine: "m", field } }),
    );
    expect(() => define(given)).toThrow(message);
  });

  it("refuses names that cannot be keys", () => {
    expect(() => define((make) => ({ start: "a/b", steps: { "a/b": done(make) } }))).toThrow(/reserved/);
  });
});

describe("graph and structure", () => {
  const sound = (make: Make) => ({
    start: "begin",
    steps: {
      begin: make.parallel({ branches: ["left", "right"], next: "ask" }),
      left: to(make, "ask"),
      right: make.step({ next: ["ask"], can: ["retry"], run: () => ({ transition: "continue", next: "ask" }) }),
      ask: make.approval({
        action: () => ({ tool: "t", arguments: 1 }),
        approvers: ["ann"],
        approved: "end",
        denied: "left over",
        expired: "left over",
      }),
      "left over": done(make),
      end: make.step({ can: ["complete", "cancel"], run: () => ({ transition: "complete", output: 1 }) }),
    },
  });

  it("S2-14 tell the way without a run", () => {
    const { graph } = define(sound).definition;
    expect(graph?.nodes.map(({ id, kind, marks }) => `${id} ${kind} ${marks ?? ""}`.trim())).toEqual([
      "begin parallel",
      "left step",
      "right step retry",
      "ask approval",
      "left over step",
      "end step",
      "/complete end",
      "/cancel end",
    ]);
    expect(graph?.edges.map(({ from, to: into, label }) => `${from} > ${into} ${label ?? ""}`.trim())).toEqual([
      "begin > left",
      "begin > right",
      "left > ask",
      "right > ask",
      "ask > end approved",
      "ask > left over denied, expired",
      "left over > /complete",
      "end > /complete",
      "end > /cancel",
    ]);
  });

  it("E-2 the structure is the same for the same steps in another order, and another one for another way, kind or gate", () => {
    const structure = (given: (make: Make) => unknown, options?: object) => define(given, options).definition.structure;
    const base = structure(sound);
    expect(base).toMatch(/./);
    const shuffled = (make: Make) => {
      const { start, steps } = sound(make);
      return { start, steps: Object.fromEntries(Object.entries(steps).reverse()) };
    };
    expect(structure(shuffled)).toBe(base);
    const changed = (change: (make: Make) => object) => (make: Make) => {
      const { start, steps } = sound(make);
      return { start, steps: { ...steps, ...change(make) } };
    };
    const others = [
      structure(changed((make) => ({ ask: ask(make, "end"), end: to(make, "left over") }))),
      structure(changed((make) => ({ left: make.evaluator({ next: ["ask"], run: () => ({}) as never }) }))),
      structure(
        changed((make) => ({
          ask: make.approval({
            action: () => ({ tool: "t", arguments: 1 }),
            approvers: ["bob"],
            approved: "end",
            denied: "left over",
            expired: "left over",
          }),
        })),
      ),
      structure(changed((make) => ({ right: to(make, "ask") }))),
      structure(sound, { merge: { n: "max" } }),
    ];
    expect(new Set([base, ...others]).size).toBe(others.length + 1);
  });
});
