// The rules of budgets, looked at entry by entry (I26, SP1, BU2)
// What each budget has spent and reserved is added up here from the journals of its tree; the store's counters must say the same, and the world
// outside must not have got more than the limit, counting what calls have reserved for.
import type { Amounts, Budget } from "../../core/budget.ts";
import { countersOf } from "../../core/counters.ts";
import type { Entry, RunStarted } from "../../core/journal.ts";
import type { Disk } from "./disk.ts";
import type { Situation } from "./situations.ts";

export interface BudgetPorts {
  readonly disk: Disk;
  hasLost(): boolean;
  violated(invariant: string, what: string): void;
  sometimes(what: Situation): void;
}

interface Purse {
  readonly spent: Map<string, number>;
  readonly reserved: Map<string, number>;
  /** What the attempts that have begun cost outside, each at most what it had reserved. */
  readonly outside: Map<string, number>;
  limits: Amounts;
}

/** A call that was dropped before it began. */
function isNothing({ type, payload }: Entry): boolean {
  return type === "step.spent" && (payload as Amounts)["calls"] === 0;
}

const MILLIONTHS = 1e6;
const UNITS = ["usd", "calls"] as const;

export class BudgetChecks {
  readonly #ports: BudgetPorts;
  readonly #purses = new Map<string, Purse>();
  /** The budgets that hold for each run. */
  readonly #budgets = new Map<string, readonly Budget[]>();
  /** What each open call has reserved, by run and step. */
  readonly #holds = new Map<string, Map<string, Amounts>>();

  constructor(ports: BudgetPorts) {
    this.#ports = ports;
  }

  forget(): void {
    this.#purses.clear();
    this.#budgets.clear();
    this.#holds.clear();
  }

  /** Takes what one commit has added to a run's journal. */
  took(run: string, entries: readonly Entry[]): void {
    for (const [i, entry] of entries.entries()) {
      if (entry.type === "run.started") this.#started(run, (entry.payload as RunStarted).budgets ?? []);
      if ((this.#budgets.get(run) ?? []).length > 0) this.#take(run, entry, entries.slice(i + 1));
    }
  }

  #started(run: string, budgets: readonly Budget[]): void {
    this.#budgets.set(run, budgets);
    for (const budget of budgets)
      if (!this.#purses.has(budget.run))
        this.#purses.set(budget.run, {
          spent: new Map(),
          reserved: new Map(),
          outside: new Map(),
          limits: budget.limits,
        });
  }

  #take(run: string, { type, key, payload }: Entry, rest: readonly Entry[]): void {
    const spend = (payload as { readonly spend?: Amounts | null } | null)?.spend ?? null;
    if (spend !== null) {
      // A batch that a budget has refused goes again with the same words. It says at its end what was refused, or has ended before that began.
      const isRefused = rest.some((one) => one.key === key && (one.type === "step.refused" || isNothing(one)));
      if (isRefused) this.#ports.sometimes("a budget had no room for a call");
      else this.#reserve(run, key as string, spend);
    }
    if (type === "step.started" && (payload as { rerun?: true } | null)?.rerun === true)
      this.#rerun(run, key as string);
    if (type === "step.refused") this.#give(run, key as string);
    if (type === "step.spent") this.#settle(run, key as string, payload as Amounts);
    if (type === "run.succeeded" || type === "run.failed" || type === "run.cancelled")
      for (const [step, held] of this.#holds.get(run) ?? []) this.#settle(run, step, held);
  }

  #reserve(run: string, step: string, amounts: Amounts): void {
    const holds = this.#holds.get(run) ?? new Map<string, Amounts>();
    this.#holds.set(run, holds);
    if (holds.has(step)) this.#violated("SP1", `step ${step} of run ${run} has reserved twice`);
    holds.set(step, amounts);
    this.#add(run, "reserved", amounts);
    for (const { run: of } of this.#budgets.get(run) ?? []) this.#withinLimit(of, step);
  }

  /** I26: what is spent and what is reserved never exceed the limit, as far as it was raised. */
  #withinLimit(of: string, step: string): void {
    const purse = this.#purses.get(of) as Purse;
    for (const unit of UNITS) {
      const limit = this.#limit(of, unit);
      const used = (purse.spent.get(unit) ?? 0) + (purse.reserved.get(unit) ?? 0);
      if (used > limit) this.#violated("I26", `${step} brings the budget of run ${of} to ${used} of ${limit} ${unit}`);
    }
  }

  #limit(of: string, unit: string): number {
    const given = this.#purses.get(of)?.limits[unit] ?? Number.POSITIVE_INFINITY;
    const raised = this.#ports.disk.tables.counters.get(`${countersOf(of)}${unit}/limit`) ?? 0;
    return Math.max(given, raised / MILLIONTHS);
  }

  #give(run: string, step: string): Amounts {
    const held = this.#holds.get(run)?.get(step) ?? {};
    this.#holds.get(run)?.delete(step);
    this.#add(run, "reserved", held, -1);
    return held;
  }

  #settle(run: string, step: string, spent: Amounts): void {
    const held = this.#give(run, step);
    const calls = spent["calls"] ?? held["calls"] ?? 0;
    this.#add(run, "spent", { ...spent, calls });
  }

  #add(run: string, what: "spent" | "reserved", amounts: Amounts, sign = 1): void {
    for (const { run: of, limits } of this.#budgets.get(run) ?? []) {
      const sums = (this.#purses.get(of) as Purse)[what];
      for (const unit of Object.keys(limits)) sums.set(unit, (sums.get(unit) ?? 0) + sign * (amounts[unit] ?? 0));
    }
  }

  /** The attempt before it was cut short: whatever it cost, only one of them is counted. */
  #rerun(run: string, step: string): void {
    for (const { run: of } of this.#budgets.get(run) ?? []) this.#purses.get(of)?.outside.delete(`${run} ${step}`);
  }

  /** SP1, I26: an attempt has begun to spend. */
  began(run: string, step: string, attempt: number, usd: number): void {
    const budgets = this.#budgets.get(run) ?? [];
    if (budgets.length === 0 || this.#ports.hasLost()) return;
    const held = this.#holds.get(run)?.get(step)?.["usd"];
    if (held === undefined)
      return this.#violated("SP1", `attempt ${attempt} of ${step} of run ${run} has begun and reserved nothing`);
    for (const { run: of } of budgets) {
      const { outside } = this.#purses.get(of) as Purse;
      const before = outside.get(`${run} ${step}`);
      // What an earlier attempt has cost stays, beside what this one does.
      if (before !== undefined) outside.set(`${run} ${step} before ${attempt}`, before);
      outside.set(`${run} ${step}`, Math.min(usd, held));
      const sum = [...outside.values()].reduce((a, b) => a + b, 0);
      const limit = this.#limit(of, "usd");
      if (sum > limit) this.#violated("I26", `the tree of run ${of} has cost ${sum} usd, its budget is ${limit}`);
    }
  }

  /** BU2: counters are a fold of the journals. */
  compare(run: string): void {
    if (this.#ports.hasLost()) return;
    for (const { run: of } of this.#budgets.get(run) ?? []) {
      const purse = this.#purses.get(of) as Purse;
      for (const unit of UNITS) {
        const reserved = purse.reserved.get(unit) ?? 0;
        this.#same(of, `${unit}/reserved`, reserved);
        this.#same(of, unit, reserved + (purse.spent.get(unit) ?? 0));
      }
    }
  }

  #same(of: string, key: string, folded: number): void {
    const counted = (this.#ports.disk.tables.counters.get(`${countersOf(of)}${key}`) ?? 0) / MILLIONTHS;
    if (counted !== folded)
      this.#violated("BU2", `counter ${key} of the budget of run ${of} is ${counted}, its journals say ${folded}`);
  }

  #violated(invariant: string, what: string): void {
    if (!this.#ports.hasLost()) this.#ports.violated(invariant, what);
  }
}
