// Drawing what operators do
// A share of the seeds has people who retry, fork and cancel runs, and steps that fail for good until somebody retries something. It draws from dice
// of its own: all other seeds stay what they were.
import { seededRandom } from "../../base/random.ts";
import { actsOutside, type Program } from "./program.ts";
import type { OperatorPlan, RunPlan } from "./scenario.ts";

/** How many seeds have them. */
const SHARE = 0.3;

/** What is drawn for a scenario: its runs, some of which may ail now, and what operators do with them. */
export interface Operated {
  readonly runs: readonly RunPlan[];
  readonly operators?: readonly OperatorPlan[];
}

/** Some of these runs, or none, are operated on. */
export function withOperators(seed: number, runs: readonly RunPlan[], processes: number): Operated {
  return new OperatorDrawing(seed, processes).operated(runs);
}

class OperatorDrawing {
  readonly #random: () => number;
  readonly #processes: number;

  constructor(seed: number, processes: number) {
    this.#random = seededRandom(`operators ${seed}`).next;
    this.#processes = processes;
  }

  operated(runs: readonly RunPlan[]): Operated {
    const isPicked = this.#odds(SHARE);
    const eligible = runs.flatMap(({ program }, i) => (actsOutside(program) ? [] : [i]));
    if (!isPicked) return { runs };
    const careful = this.#careful(runs);
    if (eligible.length === 0) return careful.length === 0 ? { runs } : { runs, operators: careful };
    const ailing = runs.map((run, i) => (eligible.includes(i) && this.#odds(0.5) ? this.#ailing(run) : run));
    const operators = Array.from({ length: this.#between(1, 4) }, () => {
      const run = this.#one(eligible);
      return this.#plan(run, (ailing[run] as RunPlan).at);
    });
    return { runs: ailing, operators: [...operators, ...careful] };
  }

  /** What acts outside is retried once when it has ended: a fork beside its source, or a second retry, would do the same things as well. */
  #careful(runs: readonly RunPlan[]): OperatorPlan[] {
    return runs.flatMap(({ program, budget, at }, run) => {
      // A fork has budgets of its own, which are not told here.
      const hasBudget = budget !== undefined || JSON.stringify(program).includes('"budget"');
      if (!actsOutside(program) || hasBudget) return [];
      const plan = this.#plan(run, at);
      return [{ ...plan, kind: "retry", on: "run", how: "position", isNamed: false, twice: false, isCareful: true }];
    });
  }

  #ailing(run: RunPlan): RunPlan {
    const ail: Program = { op: "ail", ms: this.#one([0, 5, 100, 1500]) };
    const { program } = run;
    const called: Program = { op: "call", of: { op: "seq", of: [{ op: "set", value: 1 }, ail] }, fails: false };
    const wrapped: Program = this.#one<Program>([
      { op: "seq", of: [program, ail] },
      { op: "seq", of: [ail, program] },
      { op: "all", of: [program, ail] },
      { op: "race", of: [program, ail] },
      { op: "all", of: [ail, program] },
      { op: "seq", of: [program, called] },
      { op: "all", of: [called, program] },
    ]);
    return { ...run, program: wrapped };
  }

  #plan(run: number, startsAt: number): OperatorPlan {
    const kind = this.#one(["retry", "retry", "retry", "fork", "fork", "fork", "cancel", "start"]);
    return {
      kind,
      run,
      on: kind === "cancel" ? "newest" : this.#one(["run", "run", "newest", "newest", "child"]),
      at: startsAt + this.#between(0, 5000),
      by: this.#between(0, this.#processes - 1),
      where: this.#random(),
      how: kind === "fork" ? this.#one(["position", "key"]) : "position",
      isNamed: kind === "fork" && this.#odds(0.4),
      twice: this.#odds(0.25),
    };
  }

  #between(low: number, high: number): number {
    return low + Math.floor(this.#random() * (high - low + 1));
  }

  #odds(probability: number): boolean {
    return this.#random() < probability;
  }

  #one<const T>(values: readonly T[]): T {
    return values[Math.floor(this.#random() * values.length)] as T;
  }
}
