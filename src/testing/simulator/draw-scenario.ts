// Drawing scenarios
// Swarm: each seed takes a random subset of the faults at random rates, and a random kind of load. What all seeds had in equal measure
// would hide what only some of them can reach.
import { seededRandom } from "../../base/random.ts";
import { burstsOf } from "./draw-bursts.ts";
import { withDeeds } from "./draw-deeds.ts";
import { withOperators } from "./draw-operators.ts";
import { withSaves } from "./draw-saves.ts";
import { type Program, waitsOf } from "./program.ts";
import type { Fault, FaultKind, ProcessPlan, RunPlan, Scenario, Settings, SignalPlan } from "./scenario.ts";

/** The scenario of a seed: always the same. */
export function drawScenario(seed: number): Scenario {
  return new Drawing(seed).scenario();
}

const FAULTS: readonly FaultKind[] = [
  "crash",
  "crash",
  "freeze",
  "freeze",
  "partition",
  "outage",
  "disk-full",
  "refuse",
  "lose-answer",
  "lose-answer",
  "delay",
  "power-cut",
  "clock-step",
];

class Drawing {
  readonly #seed: number;
  readonly #random: () => number;

  constructor(seed: number) {
    this.#seed = seed;
    this.#random = seededRandom(`scenario ${seed}`).next;
  }

  scenario(): Scenario {
    const settings = this.#settings();
    const processes = this.#processes();
    const runs = Array.from({ length: this.#between(1, 3) }, () => this.#run(processes.length));
    const signals = runs.flatMap((run, i) => this.#signals(run, i, processes.length));
    const faults = this.#faults(settings, processes.length);
    // Drawn last: whatever is new here leaves the rest of every seed as it was.
    const store = this.#odds(0.1) ? "sqlite" : "memory";
    const slots = this.#odds(0.3) ? { slots: this.#one([1, 1, 2]) } : {};
    const acting = withDeeds(this.#seed, runs);
    return {
      seed: this.#seed,
      settings: { ...settings, store, ...slots },
      processes,
      ...withOperators(this.#seed, withSaves(this.#seed, acting), processes.length),
      ...burstsOf(this.#seed, processes.length),
      // What nobody waits for any more is not sent.
      signals: signals.filter(({ run }) => acting[run] === runs[run]),
      faults,
    };
  }

  #settings(): Omit<Settings, "store"> {
    return {
      leaseMs: this.#one([1500, 3000]),
      pollMs: this.#one([700, 1500]),
      concurrency: this.#one([1, 2, 8, 8]),
      lanes: this.#one([1, 1, 2]),
      order: this.#one(["oldest", "any", "any", "favourite"]),
      slowness: this.#one([0, 0.05, 0.3]),
      hintLoss: this.#one([0, 0, 0.3, 1]),
      durability: this.#one(["power", "power", "process"]),
      sliceRuns: this.#one([1, 2, 128]),
    };
  }

  #processes(): ProcessPlan[] {
    const skew = this.#odds(0.2) ? 40 : 0;
    const isMixed = this.#odds(0.3);
    const workers = this.#between(1, 3);
    const plans = Array.from({ length: workers }, (_, i): ProcessPlan => {
      // The first one can take over whatever an older one has left.
      const version = i > 0 && isMixed && this.#odds(0.6) ? "1.0.0" : isMixed ? "1.0.1" : "1.0.0";
      return { version, skewMs: Math.floor((this.#random() * 2 - 1) * skew) };
    });
    return this.#odds(0.5) ? [...plans, { version: null, skewMs: 0 }] : plans;
  }

  #run(processes: number): RunPlan {
    const how = this.#one(["id", "key", "plain"] as const);
    return {
      program: this.#program(3, { isAny: false, isChild: false }),
      rounds: this.#odds(0.15) ? 2 : 1,
      fails: this.#odds(0.1),
      at: this.#odds(0.6) ? 0 : this.#between(0, 1000),
      by: this.#between(0, processes - 1),
      how,
      delayMs: this.#odds(0.1) ? this.#between(1, 2000) : 0,
      twice: how !== "plain" && this.#odds(0.3),
      awaited: this.#odds(0.5),
      cancelAt: this.#odds(0.2) ? this.#between(0, 1500) : null,
    };
  }

  #program(depth: number, where: { readonly isAny: boolean; readonly isChild: boolean }): Program {
    if (depth === 0 || this.#odds(0.25)) return this.#leaf(where);
    const inner = { ...where, isAny: false };
    const several = (some = inner) => Array.from({ length: this.#between(1, 3) }, () => this.#program(depth - 1, some));
    switch (this.#one(["seq", "seq", "seq", "all", "race", "any", "map", "call", "spawn", "patch"] as const)) {
      case "seq":
        return { op: "seq", of: several() };
      case "all":
        return { op: "all", of: several() };
      case "race":
        return { op: "race", of: several() };
      case "any":
        return { op: "any", of: [this.#program(depth - 1, inner), ...several({ ...where, isAny: true })] };
      case "map":
        return {
          op: "map",
          items: this.#between(1, 3),
          concurrency: this.#between(1, 2),
          of: this.#program(depth - 1, inner),
        };
      case "call":
        return { op: "call", of: this.#program(depth - 1, { isAny: false, isChild: true }), fails: this.#odds(0.15) };
      case "spawn":
        return { op: "spawn", of: this.#program(depth - 1, { isAny: false, isChild: true }), fails: this.#odds(0.15) };
      case "patch":
        return { op: "patch", before: this.#program(depth - 1, inner), after: this.#program(depth - 1, inner) };
    }
  }

  #leaf({ isAny, isChild }: { readonly isAny: boolean; readonly isChild: boolean }): Program {
    const ms = this.#one([0, 0, 5, 100, 2500]);
    switch (
      this.#one(["add", "add", "add", "flaky", "broken", "once", "late", "sleep", "sleep", "wait", "wait", "set"])
    ) {
      case "add":
        return { op: "add", counter: this.#one(["x", "y"]), by: this.#between(1, 9), ms };
      case "flaky":
        return { op: "flaky", fails: this.#between(0, 2), ms };
      case "broken":
        return isAny ? { op: "throw" } : { op: "broken" };
      case "once":
        return { op: "once", ms };
      case "late":
        return { op: "late", ms: 200 };
      case "sleep":
        return { op: "sleep", ms: this.#one([1, 10, 400, 2000, 4000]) };
      case "wait": {
        const timeoutMs = isChild || this.#odds(0.5) ? this.#one([5, 300, 1500]) : null;
        return { op: "wait", signal: this.#one(["s", "t"]), timeoutMs };
      }
      default:
        return { op: "set", value: this.#between(0, 9) };
    }
  }

  #signals(run: RunPlan, index: number, processes: number): SignalPlan[] {
    return [...waitsOf(run.program, run.rounds)].flatMap(([signal, count]) =>
      Array.from({ length: count }, (_, n) => ({
        run: index,
        signal,
        n,
        at: run.at + this.#between(0, 2500),
        by: this.#between(0, processes - 1),
        twice: this.#odds(0.2),
      })),
    );
  }

  #faults(settings: Pick<Settings, "leaseMs">, processes: number): Fault[] {
    if (this.#odds(0.05)) return [];
    if (this.#odds(0.04)) return this.#crashLoop();
    const kinds = FAULTS.filter(() => this.#odds(0.35));
    if (kinds.length === 0) return [];
    const spread = this.#one([60, 200, 600]);
    return Array.from({ length: this.#between(1, 7) }, () =>
      this.#fault(this.#one(kinds), Math.floor(this.#random() * spread), settings, processes),
    ).sort((a, b) => a.at - b.at);
  }

  /** One process dies again and again: a run that never gets on in between is parked in the end (P28). */
  #crashLoop(): Fault[] {
    const gap = this.#between(20, 90);
    return Array.from({ length: this.#between(6, 12) }, (_, i) => ({
      at: this.#between(10, 30) + i * gap,
      kind: "crash",
      process: 0,
      backAfterMs: 1,
    }));
  }

  #fault(kind: FaultKind, at: number, { leaseMs }: Pick<Settings, "leaseMs">, processes: number): Fault {
    const process = this.#between(0, processes - 1);
    const ms = this.#one([50, Math.floor(leaseMs / 2), leaseMs + 200, leaseMs * 3]);
    switch (kind) {
      case "crash":
        return { at, kind, process, backAfterMs: this.#one([1, 200, leaseMs * 2]) };
      case "freeze":
        return { at, kind, process, ms: this.#odds(0.7) ? leaseMs * 2 + 300 : ms };
      case "partition":
        return { at, kind, process, ms, how: this.#one(["refused", "stuck"] as const) };
      case "outage":
      case "disk-full":
        return { at, kind, ms };
      case "delay":
        return { at, kind, ms };
      case "power-cut":
        return { at, kind, lost: this.#between(0, 12), backAfterMs: this.#one([1, 500]) };
      case "clock-step":
        return this.#odds(0.5)
          ? { at, kind, process, ms: this.#one([-40, 40]) }
          : { at, kind, process: null, ms: this.#one([-4000, -300, 300, 4000, 3_600_000]) };
      default:
        return { at, kind };
    }
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
