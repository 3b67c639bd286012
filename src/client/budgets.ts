// Budgets, for those who look from outside: how one stands, and who waits for it to be raised.
import { formatMs } from "../base/duration.ts";
import { PawlError } from "../base/errors.ts";
import {
  type Amounts,
  type Budget,
  type BudgetStatus,
  budgetStatus,
  limitsInCounters,
  limitsOf,
} from "../core/budget.ts";
import { countersOf } from "../core/counters.ts";
import type { Parked, Resolved, RunStarted } from "../core/journal.ts";
import { BUDGET_DECISION } from "../core/spending.ts";
import type { RunRow, Store } from "../core/store.ts";
import { openEntry } from "../core/values.ts";
import { sealDecision } from "./decision.ts";
import type { RunSource } from "./run.ts";

/** How the nearest budget of a run stands; `null` for a run that has none. */
export async function budgetOf(
  { store, codec }: Pick<RunSource, "store" | "codec">,
  row: RunRow,
): Promise<BudgetStatus | null> {
  const budgets = await recordedBudgets({ store, codec }, row.id);
  const nearest = budgets?.at(-1) ?? null;
  if (budgets !== undefined && nearest === null) return null;
  const prefix = countersOf(nearest?.run ?? row.id);
  const counters = await store.counters(prefix);
  const budget = nearest ?? impliedBudget(row, limitsInCounters(counters, prefix));
  return budget === null ? null : budgetStatus(budget, counters, prefix, await endOf(store, budget, row));
}

/** Whoever has damaged the first entry, the rest of the run can still be looked at. */
async function recordedBudgets(
  { store, codec }: Pick<RunSource, "store" | "codec">,
  run: string,
): Promise<RunStarted["budgets"]> {
  const [first] = await store.journal(run, { limit: 1 });
  try {
    return first === undefined ? undefined : (openEntry(codec, run, first).payload as RunStarted).budgets;
  } catch {
    return undefined;
  }
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

/** For people: `0.8 of 1 usd spent, 0.1 reserved; 12 of 100 calls spent`. */
export function budgetText({ limits, spent, reserved }: BudgetStatus): string {
  const units = Object.entries(limits).map(([unit, limit]) => {
    if (unit === "time") return `${formatMs(spent[unit] ?? 0)} of ${formatMs(limit)} passed`;
    const open = reserved[unit] ?? 0;
    return `${spent[unit] ?? 0} of ${limit} ${unit} spent${open === 0 ? "" : `, ${open} reserved`}`;
  });
  return units.join("; ");
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

/** A budget holds for a tree of runs: whoever else waits for the same one goes on as well. One that somebody has decided about keeps that. */
export async function raiseForOthers(
  { store, codec }: Pick<RunSource, "store" | "codec">,
  run: string,
  park: Parked,
  decision: Resolved,
): Promise<void> {
  for (const other of await waitingForBudget(store, park, run)) {
    const row = await store.run(other);
    // Read behind its position: by now it may wait for something else.
    if ((await waitingForBudget(store, park, run, other)).length === 0) continue;
    const id = `decision-${row?.head}`;
    const data = sealDecision(codec, other, id, decision);
    await store.deliver({ to: other, id, kind: "decision", name: BUDGET_DECISION, data });
  }
}

/** The other runs that are parked because the same budget has no room, or the one of them that is named. */
async function waitingForBudget(
  store: Store,
  { detail }: Pick<Parked, "detail">,
  but: string,
  run?: string,
): Promise<string[]> {
  const waits = await store.waits({ kind: "decision", name: "budget_exceeded", ...(run !== undefined && { run }) });
  return waits.filter((wait) => wait.run !== but && budgetIn(wait.detail) === detail?.["budget"]).map(({ run }) => run);
}

function budgetIn(detail: string | null): unknown {
  try {
    return (JSON.parse(detail ?? "null") as Parked | null)?.detail?.["budget"];
  } catch {
    return undefined;
  }
}
