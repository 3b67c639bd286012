// How one step stands with the budgets of its run, and what the journal says about that.
import { type Amounts, amountsOf } from "./budget.ts";
import type { StepCall } from "./call.ts";
import type { Entry, Refused, Reserved, Resolved, StepStarted } from "./journal.ts";

/** What one step has to do with budgets; most have nothing. */
export class Spending {
  /** What each attempt reserves; `null` for a step that only tells what it has spent. */
  readonly asked: Amounts | null;
  /** What is reserved now. Another reservation is another object: what waits for one does not take it for the next. */
  reserved: Amounts | null = null;
  /** What the attempt under way says that it has spent. */
  said: Amounts | null = null;
  /** Why it does not begin. */
  refusal: Refused | null = null;
  /** How often it was refused. */
  refusals = 0;
  /** Something of what is reserved may be spent already. */
  mayHaveBegun = false;
  /** A person has decided that it fails. */
  isGivenUp = false;

  constructor(asked: Amounts | null) {
    this.asked = asked;
  }
}

export function spendingOf(call: StepCall): Spending {
  call.spending ??= new Spending(null);
  return call.spending;
}

/** What `info.spent` says: the last word counts, for each unit. */
export function saySpent(call: StepCall, amounts: unknown): void {
  const said = amountsOf(amounts, `spending of step "${call.key}"`);
  const spending = spendingOf(call);
  spending.said = { ...spending.said, ...said };
}

/** An attempt that was never begun has spent nothing. */
export function sayNothingSpent({ spending }: StepCall): void {
  if (spending === null) return;
  const units = Object.keys(spending.reserved ?? spending.asked ?? {});
  spending.said = Object.fromEntries(units.map((unit) => [unit, 0]));
}

/** It does not begin: a budget has no room for it. */
export function isRefused({ spending }: StepCall): boolean {
  return spending !== null && spending.refusal !== null;
}

/** Takes over what a recorded attempt has reserved. */
export function adoptReserved(call: StepCall, started: StepStarted): void {
  if (started?.spend !== undefined) Object.assign(spendingOf(call), { reserved: started.spend, mayHaveBegun: true });
}

/** Takes over what a recorded mark says of a step that is open. */
export function adoptSpendingMark(call: StepCall, { type, payload }: Entry): void {
  if (type === "step.started") adoptReserved(call, payload as StepStarted);
  if (type === "step.failed" && call.spending !== null) call.spending.refusal = null;
  if (type === "step.spent") spendingOf(call).reserved = null;
  if (type === "step.reserved")
    Object.assign(spendingOf(call), { reserved: (payload as Reserved).spend, refusal: null, mayHaveBegun: true });
  if (type === "step.refused") {
    const spending = spendingOf(call);
    Object.assign(spending, { reserved: null, refusal: payload as Refused, refusals: spending.refusals + 1 });
  }
}

/** Marks that concern all steps which are open: a fork has reserved nothing, and whom a person gives up fails. */
export function adoptRunMark(calls: readonly StepCall[], { type, payload }: Entry): void {
  for (const { spending } of calls) {
    if (spending === null) continue;
    if (type === "run.forked") spending.reserved = null;
    if (type === "run.resolved" && (payload as Resolved).choice === "fail")
      spending.isGivenUp = spending.refusal !== null;
  }
}

/** Why a call has no room. */
export function refusalText({ budget, unit, limit, used, asked }: Refused): string {
  if (unit === "time") return `the budget of run ${budget} allows ${limit} ms, and ${used} ms have passed.`;
  return `of the ${limit} ${unit} in the budget of run ${budget}, ${used} are spent or reserved, and it needs ${asked}.`;
}
