// Simulations: the regression book and fixed seeds; fresh ones have a file of their own
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  describeScenario,
  drawScenario,
  type Scenario,
  type Situation,
  shrinkScenario,
  simulate,
} from "../../src/testing/index.ts";
import { expectNoViolation } from "./no-violation.ts";

const FIXED_SEEDS = 120;
const BOOK = new URL("./book/", import.meta.url);

/** What every hundred seeds reach, whatever the generator becomes. */
const ALWAYS_REACHED: readonly Situation[] = [
  "a commit met: fenced",
  "a commit met: wake",
  "a process slept through its lease",
  "a run continued",
  "a run failed",
  "a run stood in line for a slot",
  "a run was cancelled while it ran",
  "a signal came before its wait",
  "a step was run again after a crash",
  "a worker fenced itself",
  "a worker was fenced by another",
  "an answer was lost: commit",
  "newer code took a run over",
  "the power failed and took writes with it",
];

describe("the regression book", () => {
  for (const file of readdirSync(BOOK).filter((name) => name.endsWith(".json"))) {
    const { what, scenario } = JSON.parse(readFileSync(new URL(file, BOOK), "utf8")) as Page;
    it(`${what.slice(0, what.indexOf(":"))} ${file.replace(".json", "").replaceAll("-", " ")}: no more`, async () => {
      expectNoViolation(await simulate(scenario));
    });
  }
});

interface Page {
  /** What was violated when it was found. */
  readonly what: string;
  readonly scenario: Scenario;
}

it("I3 I4 I5 I6 I8 I9 I10 I14 I16 I17 I18 I22 hold in fixed seeds, which reach the rare situations", async () => {
  const reached = new Set<Situation>();
  let onSqlite = 0;
  for (let seed = 1; seed <= FIXED_SEEDS; seed++) {
    const report = await simulate(drawScenario(seed));
    expectNoViolation(report);
    for (const what of report.sometimes.keys()) reached.add(what);
    if (report.scenario.settings.store === "sqlite") onSqlite++;
  }
  expect(onSqlite).toBeGreaterThan(FIXED_SEEDS / 20);
  expect(ALWAYS_REACHED.filter((what) => !reached.has(what))).toEqual([]);
}, 120_000);

it("I5 the same seed takes the same way twice, byte for byte", async () => {
  for (let seed = 1; seed <= 25; seed++) {
    const [once, twice] = [await simulate(drawScenario(seed)), await simulate(drawScenario(seed))];
    expect(twice.trace.join("\n")).toBe(once.trace.join("\n"));
  }
}, 60_000);

it("I5 the list of choices repeats a simulation, whatever the seed of its schedule", async () => {
  const scenario = drawScenario(3);
  const report = await simulate(scenario);
  const again = await simulate({ ...scenario, seed: 4711, choices: report.choices });
  expect(again.trace.join("\n")).toBe(report.trace.join("\n"));
  const quiet = await simulate({ ...scenario, choices: [] });
  expect(quiet.trace.join("\n")).not.toBe(report.trace.join("\n"));
});

it("I11 a run that can never finish is found, and shrinks to what matters", async () => {
  const drawn = drawScenario(8);
  const [run] = drawn.runs;
  if (run === undefined) throw new Error("a scenario has runs");
  const waiting = {
    ...run,
    how: "id",
    cancelAt: null,
    program: { op: "wait", signal: "never", timeoutMs: null },
  } as const;
  const report = await shrinkScenario({ ...drawn, runs: [...drawn.runs, waiting] }, { budgetMs: 8000 });
  expect(report?.violation).toMatchObject({ invariant: "I11", what: expect.stringContaining("it is not over: run-") });
  expect(report?.scenario.faults).toEqual([]);
  expect(report?.scenario.runs).toHaveLength(1);
  expect(describeScenario(report?.scenario as Scenario)).toContain("run 0: wait(never) started by process");
}, 60_000);
