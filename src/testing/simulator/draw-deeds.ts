// Drawing what runs do outside
// A share of the seeds has runs that act, ask and spend in place of what they would do otherwise. It draws from dice of its own: all other seeds
// stay what they were.
import { seededRandom } from "../../base/random.ts";
import type { Ask, AskLevel, Deal, Spend, SpendingLimit, VotePlan } from "./deeds.ts";
import type { Program } from "./program.ts";
import type { RunPlan } from "./scenario.ts";

/** How many seeds have them. */
const SHARE = 0.35;

/** Some of these runs, or none, do things outside instead. */
export function withDeeds(seed: number, runs: readonly RunPlan[]): readonly RunPlan[] {
  return new DeedDrawing(seed).runs(runs);
}

const PEOPLE = ["ann", "bob", "gil", "eve"] as const;

class DeedDrawing {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(`deeds ${seed}`).next;
  }

  runs(runs: readonly RunPlan[]): readonly RunPlan[] {
    if (!this.#odds(SHARE)) return runs;
    // Not too many at a time: what they do takes long.
    return runs.slice(0, 2).map((run, i) => (i === 0 || this.#odds(0.4) ? this.#run(run) : run));
  }

  #run(run: RunPlan): RunPlan {
    const hasBudget = this.#odds(0.4);
    return {
      ...run,
      program: this.#program(hasBudget),
      fails: this.#odds(0.25),
      cancelAt: this.#odds(0.3) ? this.#between(0, 3000) : null,
      ...(this.#odds(0.6) && { compensate: true }),
      ...(hasBudget && { budget: this.#budget() }),
    };
  }

  #program(hasBudget: boolean): Program {
    const parts = Array.from({ length: this.#between(1, 3) }, () => this.#part(hasBudget));
    const last: Program[] = this.#odds(0.2) ? [{ op: "stop", ms: this.#one([0, 10, 400]) }] : [];
    return { op: "seq", of: [this.#deal(hasBudget), ...parts, ...last] };
  }

  #part(hasBudget: boolean): Program {
    const leaf = () => this.#leaf(hasBudget);
    switch (this.#one(["leaf", "leaf", "leaf", "leaf", "all", "stopped", "race", "map", "call", "sleep"] as const)) {
      case "leaf":
        return leaf();
      case "all":
        return { op: "all", of: Array.from({ length: this.#between(2, 3) }, leaf) };
      case "stopped":
        return { op: "all", of: [leaf(), leaf(), { op: "stop", ms: this.#one([5, 60, 500]) }] };
      case "race":
        return { op: "race", of: [leaf(), { op: "sleep", ms: this.#one([5, 60, 500]) }] };
      case "map":
        return { op: "map", items: this.#between(2, 3), concurrency: 2, of: leaf() };
      case "call": {
        const of: Program = { op: "seq", of: [this.#deal(hasBudget), leaf()] };
        const budget = hasBudget && this.#odds(0.3) ? { budget: this.#budget() } : {};
        return { op: this.#one(["call", "call", "spawn"]), of, fails: this.#odds(0.2), ...budget };
      }
      case "sleep":
        return { op: "sleep", ms: this.#one([10, 400, 2000]) };
    }
  }

  #leaf(hasBudget: boolean): Program {
    const kinds = hasBudget ? (["deal", "spend", "spend", "ask"] as const) : (["deal", "deal", "ask"] as const);
    switch (this.#one<"deal" | "spend" | "ask">(kinds)) {
      case "deal":
        return this.#deal(hasBudget);
      case "spend":
        return this.#spend();
      case "ask":
        return this.#ask(hasBudget);
    }
  }

  #deal(hasBudget: boolean): Deal {
    const guard = this.#one(["detect", "idempotent", "none", "none", "step"]);
    const drawn = this.#one(["works", "works", "works", "fails-once", "broken", "none"]);
    // Without an undo it would be no more than a step.
    const undo = guard === "step" && drawn === "none" ? "works" : drawn;
    const mayFail = guard === "none" && this.#odds(0.3);
    return {
      op: "deal",
      guard,
      class: guard === "step" ? "write" : this.#one(["write", "write", "write", "execute", "draft", "read"]),
      trouble: this.#one([
        "none",
        "none",
        "none",
        "none",
        "answer-lost",
        "answer-lost",
        "slow",
        "refused",
        "lost-refused",
      ]),
      undo,
      recovery: !mayFail ? "default" : undo === "none" ? "fail" : this.#one(["fail", "compensate"]),
      isKeyed: guard !== "step" && this.#odds(0.2),
      usd: hasBudget && this.#odds(0.4) ? this.#between(1, 3) : 0,
      ms: this.#one([0, 0, 5, 100, 2500]),
    };
  }

  #spend(): Spend {
    const usd = this.#between(1, 4);
    return {
      op: "spend",
      usd,
      says: this.#odds(0.5) ? null : this.#between(0, 5),
      fails: this.#odds(0.2) ? this.#between(1, 2) : 0,
      isCaught: this.#odds(0.5),
      ms: this.#one([0, 0, 5, 100, 2500]),
    };
  }

  #budget(): SpendingLimit {
    return {
      usd: this.#between(2, 10),
      calls: this.#between(2, 8),
      onExceeded: this.#one(["park", "park", "fail"]),
      decision: this.#one(["raise", "raise", "raise", "fail", "cancel"]),
    };
  }

  #ask(hasBudget: boolean): Ask {
    const timeoutMs = this.#one([300, 1500, 4000]);
    const onExpired = this.#one(["escalate", "escalate", "compensate", "cancel", "fail", "branch"]);
    const isQuorum = this.#odds(0.25);
    return {
      op: "ask",
      approvers: isQuorum ? ["ann", "bob", "role:boss"] : this.#one([["ann"], ["ann", "bob"], ["bob", "role:boss"]]),
      quorum: isQuorum ? 2 : 1,
      fourEyes: this.#odds(0.4),
      timeoutMs,
      levels: this.#odds(0.5) ? this.#levels(onExpired === "escalate" ? 4000 : timeoutMs) : [],
      onDenied: this.#one(["compensate", "fail", "branch"]),
      onExpired,
      onChanges: this.#one(["compensate", "fail", "branch", "branch"]),
      votes: this.#votes(timeoutMs, isQuorum),
      use: this.#one(["as-approved", "as-approved", "changed", "twice"]),
      deal: { ...this.#deal(hasBudget), guard: this.#one(["detect", "idempotent", "none"]) },
    };
  }

  #levels(latest: number): AskLevel[] {
    const first: AskLevel = {
      afterMs: Math.floor(latest / 4),
      action: "escalate",
      to: ["gil"],
      revoke: this.#odds(0.3),
    };
    const action = this.#one(["notify", "approve", "deny", "cancel"]);
    const second: AskLevel = { afterMs: Math.floor(latest / 2), action };
    return this.#one([[first], [second], [first, second]]);
  }

  /** Mostly somebody says something while there is time; now and then several do at once, or too late. */
  #votes(timeoutMs: number, isQuorum: boolean): VotePlan[] {
    const count = this.#one(isQuorum ? [2, 3, 3] : [0, 1, 1, 1, 2, 3]);
    const moment = this.#between(0, timeoutMs);
    return Array.from({ length: count }, () => ({
      by: this.#one(PEOPLE),
      decision: this.#one(["approved", "approved", "approved", "denied", "changes_requested"]),
      afterMs: this.#odds(0.5) ? moment : this.#between(0, timeoutMs + 300),
    }));
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
