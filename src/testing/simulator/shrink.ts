// Shrinking
// Makes a scenario that violates an invariant smaller for as long as it still violates the same one: faults go first, then what operators do, runs
// and processes, then parts of programs, then everything that is out of the ordinary, and last the choices of the scheduler.
import type { Deal } from "./deeds.ts";
import type { Program } from "./program.ts";
import type { OperatorPlan, RunPlan, Scenario } from "./scenario.ts";
import { type SimulationReport, simulate } from "./simulation.ts";

/** How long to look for a smaller scenario. */
export interface ShrinkOptions {
  /** Stop looking for a smaller one after this long. Default 60 s. */
  readonly budgetMs?: number;
}

const QUIET = {
  slowness: 0,
  hintLoss: 0,
  order: "oldest",
  lanes: 1,
  durability: "power",
  concurrency: 8,
  sliceRuns: 128,
  store: "memory",
} as const;

/** The smallest scenario found that violates the same invariant, with its report; `null` if the given one violates none. */
export async function shrinkScenario(
  scenario: Scenario,
  { budgetMs = 60_000 }: ShrinkOptions = {},
): Promise<SimulationReport | null> {
  const until = performance.now() + budgetMs;
  let smallest = await simulate(scenario);
  if (smallest.violation === null) return null;
  const { invariant } = smallest.violation;
  const mustEndInFairWeather = await endsInFairWeather(scenario);
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const candidate of smaller(smallest)) {
      if (performance.now() > until) return smallest;
      const report = await simulate(candidate);
      if (report.violation?.invariant !== invariant) continue;
      // One that waits for a signal that was shrunk away shows nothing.
      if (mustEndInFairWeather && !(await endsInFairWeather(candidate))) continue;
      smallest = report;
      isSmaller = true;
      break;
    }
  }
  return smallest;
}

/** Whether it comes to its end where nothing goes wrong and everything goes in its turn. */
async function endsInFairWeather(scenario: Scenario): Promise<boolean> {
  const settings = { ...scenario.settings, ...QUIET };
  const { violation } = await simulate({ ...scenario, settings, faults: [], choices: [] });
  return violation === null;
}

function* smaller({ scenario, choices }: SimulationReport): Generator<Scenario> {
  for (const faults of without(scenario.faults)) yield { ...scenario, faults };
  yield* withFewerOperators(scenario);
  yield* withFewerStarts(scenario);
  for (let i = 0; i < scenario.runs.length && scenario.runs.length > 1; i++) yield withoutRun(scenario, i);
  if (scenario.processes.length > 1) yield { ...scenario, processes: scenario.processes.slice(0, -1) };
  for (const [i, run] of scenario.runs.entries())
    for (const simpler of simplerRuns(run)) yield { ...scenario, runs: scenario.runs.with(i, simpler) };
  for (const signals of without(scenario.signals)) yield { ...scenario, signals };
  yield* quieter(scenario);
  yield* calmer(scenario, choices);
}

/** Lists that lack half of the elements, or one of them. */
function* without<T>(list: readonly T[]): Generator<T[]> {
  const half = Math.ceil(list.length / 2);
  if (list.length > 2) yield list.slice(0, half);
  if (list.length > 2) yield list.slice(half);
  for (let i = 0; i < list.length; i++) yield list.toSpliced(i, 1);
}

function withoutRun(scenario: Scenario, gone: number): Scenario {
  const signals = scenario.signals
    .filter((signal) => signal.run !== gone)
    .map((signal) => (signal.run > gone ? { ...signal, run: signal.run - 1 } : signal));
  const operators = scenario.operators
    ?.filter(({ run }) => run !== gone)
    .map((plan) => (plan.run > gone ? { ...plan, run: plan.run - 1 } : plan));
  const runs = scenario.runs.toSpliced(gone, 1);
  return { ...scenario, runs, signals, ...(operators !== undefined && { operators }) };
}

function* withFewerOperators(scenario: Scenario): Generator<Scenario> {
  const { operators = [] } = scenario;
  for (const fewer of without(operators)) yield { ...scenario, operators: fewer };
  for (const [i, plan] of operators.entries()) {
    const simplerPlans: readonly OperatorPlan[] = [
      ...(plan.twice ? [{ ...plan, twice: false }] : []),
      ...(plan.isNamed ? [{ ...plan, isNamed: false }] : []),
      ...(plan.on !== "run" ? [{ ...plan, on: "run" as const }] : []),
    ];
    for (const one of simplerPlans) yield { ...scenario, operators: operators.with(i, one) };
  }
}

function* withFewerStarts(scenario: Scenario): Generator<Scenario> {
  const { bursts = [], ...others } = scenario;
  if (bursts.length > 0) yield others;
  for (const [i, burst] of bursts.entries())
    for (const starts of without(burst.starts)) yield { ...scenario, bursts: bursts.with(i, { ...burst, starts }) };
}

function* simplerRuns(run: RunPlan): Generator<RunPlan> {
  if (run.rounds > 1) yield { ...run, rounds: 1 };
  if (run.cancelAt !== null) yield { ...run, cancelAt: null };
  const { budget: _budget, ...free } = run;
  if (run.budget !== undefined) yield free;
  if (run.fails) yield { ...run, fails: false };
  if (run.twice) yield { ...run, twice: false };
  if (run.awaited) yield { ...run, awaited: false };
  if (run.delayMs > 0) yield { ...run, delayMs: 0 };
  if (run.how !== "id") yield { ...run, how: "id" };
  if (run.at > 0) yield { ...run, at: 0 };
  for (const program of simpler(run.program)) yield { ...run, program };
}

/** Programs that are a part of this one, or have one part less. */
function* simpler(program: Program): Generator<Program> {
  switch (program.op) {
    case "seq":
    case "all":
    case "race":
    case "any":
      yield* program.of.filter((one) => one.op !== "throw");
      if (program.of.length > 1) for (const of of without(program.of)) if (of.length > 0) yield { ...program, of };
      for (const [i, one] of program.of.entries())
        for (const smallerOne of simpler(one)) yield { ...program, of: program.of.with(i, smallerOne) };
      return;
    case "map":
      yield program.of;
      if (program.items > 1) yield { ...program, items: 1 };
      for (const of of simpler(program.of)) yield { ...program, of };
      return;
    case "call":
    case "spawn":
      yield program.of;
      if (program.fails) yield { ...program, fails: false };
      for (const of of simpler(program.of)) yield { ...program, of };
      return;
    case "patch":
      yield program.before;
      yield program.after;
      return;
    case "ask":
      yield program.deal;
      for (const votes of without(program.votes)) yield { ...program, votes };
      for (const levels of without(program.levels)) yield { ...program, levels };
      if (program.use !== "as-approved") yield { ...program, use: "as-approved" };
      for (const deal of simplerDeals(program.deal)) yield { ...program, deal };
      return;
    case "save":
      if (program.times > 1) yield { ...program, times: 1 };
      if (program.fails > 0) yield { ...program, fails: 0 };
      return;
    case "deal":
      yield* simplerDeals(program);
      return;
    default:
  }
}

function* simplerDeals(deal: Deal): Generator<Deal> {
  if (deal.ms > 0) yield { ...deal, ms: 0 };
  if (deal.usd > 0) yield { ...deal, usd: 0 };
  if (deal.isKeyed) yield { ...deal, isKeyed: false };
  if (deal.trouble !== "none") yield { ...deal, trouble: "none" };
  if (deal.undo !== "works" && deal.undo !== "none") yield { ...deal, undo: "works" };
}

function* quieter(scenario: Scenario): Generator<Scenario> {
  const { settings, processes } = scenario;
  for (const [name, value] of Object.entries(QUIET))
    if (settings[name as keyof typeof QUIET] !== value) yield { ...scenario, settings: { ...settings, [name]: value } };
  for (const [i, plan] of processes.entries()) {
    if (plan.skewMs !== 0) yield { ...scenario, processes: processes.with(i, { ...plan, skewMs: 0 }) };
    if (plan.version === "1.0.1") yield { ...scenario, processes: processes.with(i, { ...plan, version: "1.0.0" }) };
  }
}

/** Fewer choices that are not the quiet one. */
function* calmer(scenario: Scenario, taken: readonly number[]): Generator<Scenario> {
  const choices = scenario.choices ?? taken;
  const last = choices.findLastIndex((choice) => choice !== 0) + 1;
  if (scenario.choices === undefined || last < choices.length) yield { ...scenario, choices: choices.slice(0, last) };
  if (last === 0) return;
  for (let length = Math.floor(last / 2); length > 0 && length < last; length = Math.floor((length + last + 1) / 2)) {
    yield { ...scenario, choices: choices.slice(0, length) };
    if (length === last - 1) break;
  }
  for (let size = 64; size >= 1; size /= 4) {
    for (let from = 0; from < last; from += size) {
      const part = choices.slice(from, from + size);
      if (part.every((choice) => choice === 0)) continue;
      yield {
        ...scenario,
        choices: [...choices.slice(0, from), ...part.map(() => 0), ...choices.slice(from + size, last)],
      };
    }
  }
}
