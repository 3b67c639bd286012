// Budgets, for those who look from outside: how one stands, and who waits for it to be raised.
import { PawlError } from "../base/errors.ts";
import {
  type Amounts,
  type Budget,
  type BudgetStatus,
  budgetStatus,
  limitsInCounters,
  limitsOf,
} from "../core/budget.ts";
import type { Parked, RunStarted } from "../core/journal.ts";
import { countersOf, type RunRow, type Store } from "../core/store.ts";
import { openEntry } from "../core/values.ts";
import type { RunSource } from "./run.ts";

/** How the nearest budget of a run stands; `null` for a run that has none. */
export async function budgetOf(
  { store, codec }: Pick<RunSource, "store" | "codec">,
  row: RunRow,
): Promise<BudgetStatus | null> {
  const [first] = await store.journal(row.id, { limit: 1 });
  if (first === undefined || first.type !== "run.started") return null;
  const { budgets } = openEntry(codec, row.id, first).payload as RunStarted;
  const nearest = budgets === undefined ? null : (budgets.at(-1) ?? null);
  if (budgets !== undefined && nearest === null) return null;
  const prefix = countersOf(nearest?.run ?? row.id);
  const counters = await store.counters(prefix);
  const budget = nearest ?? impliedBudget(row, limitsInCounters(counters, prefix));
  return budget === null ? null : budgetStatus(budget, counters, prefix, await endOf(store, budget, row));
}

/** It was started where the workflow was not known, and what it has used tells of the limits. */
function impliedBudget({ id, createdAt }: RunRow, limits: Amounts): Budget | null {
  if (Object.keys(limits).length === 0) return null;
  return { run: id, limits, onExceeded: "park", since: createdAt };
}

/** Until when the time of a budget counts. */
async function endOf(store: Store, { run }: Budget, row: RunRow): Promise<number> {
  const owner = run === row.id ? row : await store.run(run);
  return owner?.endedAt ?? store.clock.now();
}

/** Refuses what could not raise the budget that a run waits for. */
export function assertRaise(run: string, { detail }: Pick<Parked, "detail">, value: unknown): void {
  const unit = String(detail?.["unit"]);
  const limits =
    typeof value === "object" && value !== null ? limitsOf(value as Record<string, unknown>, "raised budget") : {};
  const limit = detail?.["limit"];
  if (limits[unit] !== undefined && (typeof limit !== "number" || limits[unit] > limit)) return;
  throw new PawlError(
    "invalid_argument",
    `"raise" of run ${run} needs a new limit of ${unit} above ${String(limit)}, such as { "${unit}": ${2 * Number(limit || 1)} }.`,
    { fields: { run, unit, limit } },
  );
}

/** The other runs that are parked because the same budget has no room. */
export async function waitingForBudget(
  store: Store,
  { detail }: Pick<Parked, "detail">,
  but: string,
): Promise<string[]> {
  const waits = await store.waits({ kind: "decision", name: "budget_exceeded" });
  return waits.filter((wait) => wait.run !== but && budgetIn(wait.detail) === detail?.["budget"]).map(({ run }) => run);
}

function budgetIn(detail: string | null): unknown {
  try {
    return (JSON.parse(detail ?? "null") as Parked | null)?.detail?.["budget"];
  } catch {
    return undefined;
  }
}
