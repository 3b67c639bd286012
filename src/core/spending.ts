// Spending
// How the calls of a run use its budgets: reserved in the commit that records the call, settled in the one that records its outcome.
//
//   SP1. A step's function begins only behind the commit that reserves for it; what a crash leaves reserved is used by the rerun.
//   SP2. A commit that a budget refuses is offered again without what was refused, and says so: nothing else of it is lost.
//   SP3. Calls that were refused wait, or fail; what else is under way in the run goes on. What follows then is in `refused-calls.ts`.
//   SP4. What an attempt has spent is what it says, unit by unit, or else what it reserved: the money may be gone. More than reserved counts, too.
import { PawlError } from "../base/errors.ts";
import { type Amounts, type Budget, COUNTERS, fromCount, limitsOf, toCount } from "./budget.ts";
import type { StepCall } from "./call.ts";
import type { CounterRefusal } from "./counters.ts";
import type { Refused, Resolved } from "./journal.ts";
import type { Pass } from "./pass.ts";
import { heedCondition, wakeResting } from "./refused-calls.ts";
import { refusalText, sayNothingSpent, spendingOf } from "./spending-state.ts";
import type { CounterChange } from "./store.ts";

/** The name of decisions about a budget: no step has such a key. */
export const BUDGET_DECISION = "#budget";

// Which call a change of the open commit was made for, so that a refusal finds it.
const askedBy = new WeakMap<CounterChange, StepCall>();
// The reservation that a change makes or settles: what was never reserved is not given back either.
const reservationOf = new WeakMap<CounterChange, Amounts>();

/** Reserves for the next attempt, in the open commit; says what, to be recorded with it. Nothing where no budget holds, or it is reserved already. */
export function reserve(pass: Pass, call: StepCall): Amounts | null {
  const { spending } = call;
  const { budgets } = pass.body;
  if (spending === null) return null;
  spending.refusal = null;
  if (spending.asked === null || budgets.length === 0 || spending.reserved !== null) return null;
  const amounts = { calls: 1, ...spending.asked };
  spending.reserved = amounts;
  // Whatever an earlier pass knows of it: nothing begins before this is durable.
  spending.mayHaveBegun = false;
  for (const budget of budgets) {
    for (const change of reservation(budget, amounts, pass.ports.clock.now())) {
      askedBy.set(change, call);
      reservationOf.set(change, amounts);
      pass.draft.counter(change);
    }
    // Nobody could record it when the run was started: who looks at the run finds the limits here.
    if (budget.isImplied) raise(pass, budget.run, budget.limits);
  }
  return amounts;
}

function reservation({ run: of, limits, since }: Budget, amounts: Amounts, now: number): CounterChange[] {
  return Object.entries(limits).flatMap(([unit, limit]): CounterChange[] => {
    const bound = {
      key: COUNTERS.used(unit),
      of,
      max: toCount(unit, limit),
      maxFrom: COUNTERS.limit(unit),
      held: false,
    };
    if (unit === "time") return [{ ...bound, by: Math.max(0, Math.round(now - since)), atLeast: true }];
    const by = toCount(unit, amounts[unit] ?? 0);
    if (by === 0) return [];
    return [
      { ...bound, by },
      { key: COUNTERS.reserved(unit), of, by, max: null, held: true },
    ];
  });
}

/** The end of an attempt: what it has spent is recorded with its outcome, and no longer reserved (SP4). */
export function settleSpending(pass: Pass, call: StepCall): void {
  const { spending } = call;
  if (spending === null || (spending.reserved ?? spending.said ?? spending.asked) === null) return;
  // Refused, it has not begun.
  if (spending.refusal !== null) return;
  const { reserved, said } = spending;
  const spent = { ...spending.asked, ...said };
  spending.reserved = null;
  spending.said = null;
  spending.mayHaveBegun = false;
  pass.draft.append(pass.ports.clock.now(), "step.spent", call.key, spent);
  pass.notes.addSpent(spent, true);
  pass.steps.hasGivenBack();
  if (reserved !== null) tellOthers(pass);
  const settle = (change: CounterChange) => {
    if (reserved !== null) reservationOf.set(change, reserved);
    pass.draft.counter(change);
  };
  for (const { run: of, limits } of pass.body.budgets) {
    for (const unit of Object.keys(limits)) {
      if (unit === "time") continue;
      const before = toCount(unit, reserved?.[unit] ?? 0);
      const after = toCount(unit, (unit === "calls" ? (said?.[unit] ?? reserved?.[unit]) : spent[unit]) ?? 0);
      if (after !== before) settle({ key: COUNTERS.used(unit), of, by: after - before, max: null, held: false });
      if (before !== 0) settle({ key: COUNTERS.reserved(unit), of, by: -before, max: null, held: true });
    }
  }
}

/** Once it is durable, whoever rests because of it may try again. */
function tellOthers({ body, draft, ports }: Pass): void {
  for (const { run } of body.budgets) draft.onDurable(() => wakeResting(ports, run));
}

/** What is under way when a run stops may have spent all that it reserved. */
export function settleOpen(pass: Pass): void {
  if (pass.body.budgets.length === 0) return;
  for (const call of pass.calls.steps()) {
    const { spending } = call;
    // Nothing is to be settled, or that has been done: a cancel may have overtaken the end.
    if (spending === null || (spending.reserved ?? spending.said) === null || call.retryAt !== null) continue;
    if (!spending.mayHaveBegun) sayNothingSpent(call);
    settleSpending(pass, call);
  }
}

// Refusals

/** A counter has refused the batch in flight: it is taken back and goes again without what was refused (SP2). False: there is no such batch. */
export function takeRefusal(pass: Pass, refusal: CounterRefusal): boolean {
  const changes = pass.outgoing.inFlight?.commit.counters;
  const change = changes?.[refusal.at];
  if (changes === undefined || change === undefined) return false;
  if (heedCondition(change, refusal)) return true;
  // It was about to rest: first of all it stays.
  if (pass.outgoing.inFlight?.withoutSuspension != null) {
    pass.overtaken("wake");
    return true;
  }
  const refused = refusedCalls(changes, refusal);
  const lost = new Set(changes.filter((one) => refused.has(askedBy.get(one) as StepCall)).map(reservationIn));
  const isLost = (one: CounterChange) => reservationIn(one) !== null && lost.has(reservationIn(one));
  // Nobody has reserved it: a counter was changed by somebody else. It must not keep the run from going on.
  pass.outgoing.takeBack((one) => (refused.size === 0 ? one === change : isLost(one)));
  for (const call of refused) refuse(pass, call, change, refusal);
  pass.ports.dirty(pass);
  pass.evaluate();
  return true;
}

function reservationIn(change: CounterChange): Amounts | null {
  return reservationOf.get(change) ?? null;
}

/** The call that was refused, and those behind it that the same counter has no room for either. */
function refusedCalls(changes: readonly CounterChange[], { at, value, max }: CounterRefusal): Set<StepCall> {
  const { key, of } = changes[at] as CounterChange;
  const refused = new Set<StepCall>();
  let sum = value;
  for (const change of changes.slice(at)) {
    const call = askedBy.get(change);
    if (change.key !== key || change.of !== of || call === undefined) continue;
    const after = change.atLeast === true ? Math.max(sum, change.by) : sum + change.by;
    if (max !== null && after > max) refused.add(call);
    else sum = after;
  }
  return refused;
}

function refuse(
  pass: Pass,
  call: StepCall,
  { key: unit, of = "", by }: CounterChange,
  { value, max }: CounterRefusal,
): void {
  const spending = spendingOf(call);
  const isTime = unit === "time";
  const refusal: Refused = {
    budget: of,
    unit,
    limit: fromCount(unit, max ?? 0),
    used: fromCount(unit, isTime ? by : value),
    asked: isTime ? 0 : (spending.reserved?.[unit] ?? 0),
  };
  spending.reserved = null;
  spending.refusal = refusal;
  spending.refusals++;
  // Behind an end nothing joins, and nothing begins; nor does a call that nobody waits for any more. A run that is parked goes on some day.
  if ((pass.isClosed && !pass.isParking) || !call.open) return;
  pass.draft.append(pass.ports.clock.now(), "step.refused", call.key, refusal);
  if (pass.isParking) return;
  if (onExceeded(pass, refusal) === "fail") failRefused(pass, call);
  else pass.steps.refused(call);
}

function onExceeded({ body }: Pass, { budget }: Refused): Budget["onExceeded"] {
  return body.budgets.find(({ run }) => run === budget)?.onExceeded ?? "park";
}

function failRefused(pass: Pass, call: StepCall): void {
  const refusal = call.spending?.refusal;
  if (refusal == null) return;
  const message = `Step "${call.key}" of run ${pass.id} was not begun: ${refusalText(refusal)} Give the run a larger budget, or catch this error.`;
  const error = new PawlError("budget_exceeded", message, { fields: { run: pass.id, step: call.key, ...refusal } });
  pass.steps.endWith(call, error);
}

// Going on

/** Reserves for a call that was refused before, and begins it behind that (SP1). */
export function beginRefused(pass: Pass, call: StepCall): void {
  const spend = reserve(pass, call);
  pass.draft.append(pass.ports.clock.now(), "step.reserved", call.key, { spend }, call);
  pass.steps.startBehindBarrier(call);
  pass.ports.dirty(pass);
}

/** What becomes of calls that were refused in an earlier pass: a person has decided, or the budget is asked again. */
export function recoverRefused(pass: Pass, calls: readonly StepCall[], decision: Resolved | null): void {
  const budget = calls[0]?.spending?.refusal?.budget;
  if (decision?.choice === "raise" && budget !== undefined) raise(pass, budget, raisedLimits(decision.value));
  for (const call of calls) {
    const refusal = call.spending?.refusal as Refused;
    const mustFail = decision?.choice === "fail" || call.spending?.isGivenUp === true;
    if (mustFail || onExceeded(pass, refusal) === "fail") failRefused(pass, call);
    else beginRefused(pass, call);
  }
}

/** What a person has given as new limits; none where that cannot be read: the run is parked again then, and says so. */
function raisedLimits(value: unknown): Amounts {
  try {
    return limitsOf((value ?? {}) as Record<string, unknown>, "raised budget");
  } catch {
    return {};
  }
}

function raise(pass: Pass, of: string, limits: Amounts): void {
  for (const [unit, limit] of Object.entries(limits)) {
    const by = toCount(unit, limit);
    if (by > 0) pass.draft.counter({ key: COUNTERS.limit(unit), of, by, max: null, held: false, atLeast: true });
  }
  pass.draft.onDurable(() => wakeResting(pass.ports, of));
}
