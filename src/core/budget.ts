// Budgets
// What a run, and every run below it, may spend: money, tokens, calls, time, or any unit of one's own. The limits travel in the first entry of
// each run of the tree; how much of them is used is kept in counters of the run that the budget was given to.
//
//   BU1. Amounts are counted in whole millionths of a unit, time in milliseconds: sums of fractions neither grow nor fall by rounding.
//   BU2. A counter holds what is spent and what is reserved, so that a bounded change of it is the whole check. What of it is only reserved is
//        counted once more, held by the run that has reserved it.
//   BU3. A raised limit is a counter of its own, which only ever rises: two people who raise to the same amount have raised once.
import { toMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import { assertName } from "../base/ids.ts";
import type { CounterRow } from "./store.ts";

/** What may be spent; any other name is a unit of your own. */
export interface BudgetOptions {
  /** Money. */
  readonly usd?: number;
  readonly tokens?: number;
  /** How many calls may reserve: steps with `spend`. */
  readonly calls?: number;
  /** From when the run begins: a duration such as "2h". Looked at when a call reserves. */
  readonly time?: number | string;
  /** What happens to a call that the budget has no room for: the run is parked and a person may raise it (default), or the call fails. */
  readonly onExceeded?: "park" | "fail";
  readonly [unit: string]: number | string | undefined;
}

/** Amounts by unit, such as `{ usd: 0.05, tokens: 2000 }`. */
export type Amounts = Readonly<Record<string, number>>;

/** Limits with their defaults filled in; time in milliseconds. */
export interface BudgetPlan {
  readonly limits: Amounts;
  readonly onExceeded: "park" | "fail";
}

/** A budget as the runs that it holds for record it. */
export interface Budget extends BudgetPlan {
  /** The run that it was given to. */
  readonly run: string;
  /** Store time from which `time` counts. */
  readonly since: number;
  /** The first entry of its run does not name it: the run was started where the workflow was not known. */
  readonly isImplied?: true;
}

/** How a budget stands. */
export interface BudgetStatus {
  /** The run that it was given to. */
  readonly run: string;
  /** As raised since; time in milliseconds. */
  readonly limits: Amounts;
  readonly spent: Amounts;
  /** Of calls under way, not spent yet. */
  readonly reserved: Amounts;
}

/** Larger amounts could not be counted to the millionth. */
const MOST = 1e9;

/** What comes out of the options; `undefined` for none, and no limits at all where they are empty. */
export function budgetPlan(options: BudgetOptions | undefined, where: string): BudgetPlan | undefined {
  if (options === undefined) return undefined;
  if (typeof options !== "object" || options === null)
    throw invalid(`budget of ${where}`, options, "Give an object such as { usd: 1, calls: 100 }");
  const { onExceeded = "park", ...units } = options;
  if (onExceeded !== "park" && onExceeded !== "fail")
    throw invalid(`budget.onExceeded of ${where}`, onExceeded, 'Give "park" or "fail"');
  return { limits: limitsOf(units, `budget of ${where}`), onExceeded };
}

/** Limits by unit, as somebody has given them. */
export function limitsOf(units: Readonly<Record<string, unknown>>, what: string): Amounts {
  const { time, ...amounts } = units;
  const limits = amountsOf(amounts, what);
  return time === undefined ? limits : { ...limits, time: Math.ceil(toMs(time as string, `time of the ${what}`)) };
}

/** Amounts of a call or a limit, each checked. */
export function amountsOf(given: unknown, what: string): Amounts {
  if (typeof given !== "object" || given === null)
    throw invalid(what, given, "Give an object such as { usd: 0.05, tokens: 2000 }");
  const amounts: Record<string, number> = {};
  for (const [unit, amount] of Object.entries(given)) {
    if (amount === undefined) continue;
    assertName(`unit of the ${what}`, unit);
    if (typeof amount !== "number" || !(amount >= 0 && amount <= MOST))
      throw invalid(`${unit} of the ${what}`, amount, `Give a number from 0 to ${MOST}`);
    amounts[unit] = amount;
  }
  return amounts;
}

function invalid(what: string, value: unknown, advice: string): PawlError {
  return new PawlError("invalid_argument", `The ${what} is ${String(value)}. ${advice}.`, { fields: { field: what } });
}

/** The budgets of a new run: those of the run that starts it, and its own below them. */
export function budgetsFor(
  run: string,
  plan: (BudgetPlan & Pick<Budget, "isImplied">) | undefined,
  since: number,
  above: readonly Budget[] = [],
): readonly Budget[] {
  return plan === undefined || Object.keys(plan.limits).length === 0 ? above : [...above, { run, ...plan, since }];
}

/** The budgets of a copy: what was its own, or that of a run which was copied with it, begins anew. */
export function budgetsOfCopy(
  budgets: readonly Budget[],
  copies: ReadonlyMap<string, string>,
  since: number,
): Budget[] {
  return budgets.map((budget) => {
    const run = copies.get(budget.run);
    return run === undefined ? budget : { ...budget, run, since };
  });
}

// Counters

const MILLIONTHS = 1e6;

/** An amount as counters have it (BU1). */
export function toCount(unit: string, amount: number): number {
  return Math.round(unit === "time" ? amount : amount * MILLIONTHS);
}

export function fromCount(unit: string, count: number): number {
  return unit === "time" ? count : count / MILLIONTHS;
}

/** Of each unit: what is spent or reserved, what of it is reserved, and what the limit was raised to. Units have no slash. */
export const COUNTERS = {
  used: (unit: string): string => unit,
  reserved: (unit: string): string => `${unit}/reserved`,
  limit: (unit: string): string => `${unit}/limit`,
} as const;

/** How a budget stands by its counters, whose keys begin with `prefix`. */
export function budgetStatus(budget: Budget, rows: readonly CounterRow[], prefix: string, now: number): BudgetStatus {
  const counts = new Map(rows.map(({ key, value }) => [key.slice(prefix.length), value]));
  const count = (key: string) => counts.get(key) ?? 0;
  const limits: Record<string, number> = {};
  const spent: Record<string, number> = {};
  const reserved: Record<string, number> = {};
  for (const [unit, limit] of Object.entries(budget.limits)) {
    limits[unit] = Math.max(limit, fromCount(unit, count(COUNTERS.limit(unit))));
    spent[unit] =
      unit === "time"
        ? Math.max(0, now - budget.since)
        : fromCount(unit, count(COUNTERS.used(unit)) - count(COUNTERS.reserved(unit)));
    if (unit !== "time") reserved[unit] = fromCount(unit, count(COUNTERS.reserved(unit)));
  }
  return { run: budget.run, limits, spent, reserved };
}

/** The limits of a budget that only its counters tell of: its run was started where the workflow was not known. */
export function limitsInCounters(rows: readonly CounterRow[], prefix: string): Amounts {
  const limits: Record<string, number> = {};
  for (const { key, value } of rows) {
    const [unit = "", kind] = key.slice(prefix.length).split("/");
    if (kind === "limit") limits[unit] = fromCount(unit, value);
  }
  return limits;
}
