import { type DeedProgram, isDeed } from "./deeds.ts";
import type { Program } from "./program.ts";
import type { BurstPlan, Fault, OperatorPlan, RunPlan, Scenario } from "./scenario.ts";

/** A scenario in words: who is there, what they do, and what goes wrong. */
export function describeScenario(scenario: Scenario): string {
  const { settings, processes, runs, signals, operators = [], bursts = [], faults, choices } = scenario;
  return [
    `seed ${scenario.seed}, lease ${settings.leaseMs} ms, poll ${settings.pollMs} ms, concurrency ${settings.concurrency}, lanes ${settings.lanes}, slices of ${settings.sliceRuns}`,
    `order: ${settings.order}, slowness ${settings.slowness}, hints lost ${settings.hintLoss}, durability ${settings.durability}, store ${settings.store}${settings.slots === undefined ? "" : `, ${settings.slots} runs at a time`}`,
    ...processes.map(
      ({ version, skewMs }, i) =>
        `process ${i}: ${version === null ? "client" : `worker ${version}`}${skewMs === 0 ? "" : `, clock ${skewMs} ms off`}`,
    ),
    ...runs.map((run, i) => `run ${i}: ${describeRun(run)}`),
    ...signals.map(
      ({ run, signal, n, at, by, twice }) =>
        `signal ${signal} ${n} to run ${run} at ${at} ms by process ${by}${twice ? ", twice" : ""}`,
    ),
    ...operators.map(describeOperator),
    ...bursts.map(describeBurst),
    ...faults.map((fault) => `at event ${fault.at}: ${describeFault(fault)}`),
    ...(choices === undefined
      ? []
      : [`choices: ${choices.filter((choice) => choice !== 0).length} that are not the quiet one`]),
  ].join("\n");
}

function describeRun(run: RunPlan): string {
  const more = [
    run.rounds > 1 ? `${run.rounds} rounds` : null,
    run.fails ? "fails in the end" : null,
    run.delayMs > 0 ? `${run.delayMs} ms later` : null,
    run.twice ? "by another one too" : null,
    run.awaited ? "awaited" : null,
    run.cancelAt === null ? null : `cancelled ${run.cancelAt} ms later${run.compensate ? " and undone" : ""}`,
    run.budget === undefined ? null : `budget ${JSON.stringify(run.budget)}`,
  ].filter((one) => one !== null);
  const start = `started by process ${run.by} at ${run.at} ms (${run.how})`;
  return `${describeProgram(run.program)} ${[start, ...more].join(", ")}`;
}

const ON: Readonly<Record<OperatorPlan["on"], string>> = {
  run: "",
  newest: "the newest fork of ",
  child: "a child of ",
};

function describeOperator({ kind, run, on, at, by, where, how, isNamed, twice, isCareful }: OperatorPlan): string {
  const point = kind === "fork" ? ` at ${Math.floor(where * 100)} % (${how}${isNamed ? ", with an id" : ""})` : "";
  return `${kind} ${ON[on]}run ${run}${point} at ${at} ms by process ${by}${twice ? ", twice" : ""}${isCareful ? ", once at most" : ""}`;
}

function describeBurst({ waitMs, maxMs, ms, starts }: BurstPlan, i: number): string {
  const most = maxMs === null ? "" : `, ${maxMs} ms at most`;
  const all = starts.map(({ at, by }) => `at ${at} ms by process ${by}`).join(", ");
  return `burst ${i}: add(z, ${ms} ms) after ${waitMs} ms without a start${most}; started ${all}`;
}

function describeDeed(deed: DeedProgram): string {
  if (deed.op !== "ask") return `${deed.op}(${described({ ...deed, op: null })})`;
  return `ask(${described({ ...deed, op: null, deal: null })})[${describeDeed(deed.deal)}]`;
}

/** What is out of the ordinary. */
function described(fields: object): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== false && value !== 0 && value !== null && value !== "none" && value !== "default")
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(", ");
}

function describeProgram(program: Program): string {
  if (isDeed(program)) return describeDeed(program);
  switch (program.op) {
    case "add":
      return `add(${program.counter}, ${program.by}, ${program.ms} ms)`;
    case "flaky":
      return `flaky(${program.fails}, ${program.ms} ms)`;
    case "save":
      return `save(${program.times} times, ${program.ms} ms each${program.fails === 0 ? "" : `, ${program.fails} failures`})`;
    case "once":
    case "late":
    case "ail":
    case "sleep":
      return `${program.op}(${program.ms} ms)`;
    case "wait":
      return `wait(${program.signal}${program.timeoutMs === null ? "" : `, ${program.timeoutMs} ms`})`;
    case "set":
      return `set(${program.value})`;
    case "seq":
    case "all":
    case "race":
    case "any":
      return `${program.op}[${program.of.map(describeProgram).join(", ")}]`;
    case "map":
      return `map(${program.items} items, ${program.concurrency} at once)[${describeProgram(program.of)}]`;
    case "call":
    case "spawn":
      return `${program.op}[${describeProgram(program.of)}${program.fails ? ", fails" : ""}${program.budget === undefined ? "" : `, budget ${JSON.stringify(program.budget)}`}]`;
    case "patch":
      return `patch[${describeProgram(program.before)} | ${describeProgram(program.after)}]`;
    default:
      return program.op;
  }
}

function describeFault(fault: Fault): string {
  switch (fault.kind) {
    case "crash":
      return `process ${fault.process} dies and is back after ${fault.backAfterMs} ms`;
    case "freeze":
      return `process ${fault.process} stands still for ${fault.ms} ms`;
    case "partition":
      return `process ${fault.process} is cut off for ${fault.ms} ms (${fault.how})`;
    case "outage":
      return `the store answers nobody for ${fault.ms} ms`;
    case "disk-full":
      return `the disk is full for ${fault.ms} ms`;
    case "refuse":
      return "the next call is refused";
    case "lose-answer":
      return "the answer to the next write is lost";
    case "delay":
      return `the next write arrives ${fault.ms} ms late`;
    case "power-cut":
      return `the power fails and takes up to ${fault.lost} writes; all are back after ${fault.backAfterMs} ms`;
    case "clock-step":
      return `the clock of ${fault.process === null ? "the machine" : `process ${fault.process}`} is set by ${fault.ms} ms`;
  }
}
