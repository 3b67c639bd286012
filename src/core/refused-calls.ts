// Calls that a budget has refused
// They wait while anything else of their run is under way. Then they are tried again, rest for a while, or the run is parked.
//
//   RC1. A run is parked only if what is spent leaves no room, whatever others have reserved, and nobody has raised the limit. The commit that parks
//        carries that as conditions: bounded changes of the counters, each of which is taken back by the next. Refused, the run stays.
//   RC2. Where only what others have reserved is in the way, the run rests. It tries again when something of the budget is settled in this process,
//        and after a pause that grows, as others may settle elsewhere.
import { COUNTERS, toCount } from "./budget.ts";
import type { StepCall } from "./call.ts";
import type { CounterRefusal } from "./counters.ts";
import type { Parked, Refused } from "./journal.ts";
import { LIMITS } from "./limits.ts";
import type { Pass } from "./pass.ts";
import type { PassPorts } from "./pass-ports.ts";
import { wakeupOf } from "./pass-wakeup.ts";
import { isRefused, refusalText } from "./spending-state.ts";
import type { CounterChange } from "./store.ts";

interface Condition {
  readonly about: "limit" | "reserved" | "used";
  readonly refusal: Refused;
  /** The run that is parked if it holds. */
  readonly calls: RefusedCalls;
}

const conditions = new WeakMap<CounterChange, Condition>();
// Of each worker: those who may rest until something is settled.
const refusedHere = new WeakMap<PassPorts, Set<RefusedCalls>>();

export class RefusedCalls {
  readonly #pass: Pass;
  readonly #begin: (call: StepCall) => void;
  readonly #calls = new Set<StepCall>();
  /** What was spent or reserved of a counter when that was told last. */
  readonly #used = new Map<string, number>();
  #mustRest = false;
  /** Something was given back since the last refusal: there may be room now. */
  mayTryAgain = false;

  /** `begin` reserves for a call, and begins it behind that. */
  constructor(pass: Pass, begin: (call: StepCall) => void) {
    this.#pass = pass;
    this.#begin = begin;
  }

  add(call: StepCall): void {
    const { ports } = this.#pass;
    if (!refusedHere.has(ports)) refusedHere.set(ports, new Set());
    refusedHere.get(ports)?.add(this);
    this.#calls.add(call);
    this.#used.clear();
    this.#mustRest = false;
    this.mayTryAgain = false;
  }

  /** When nothing else is under way: tries once more if there may be room, rests, or else parks the run. */
  goOn(): void {
    const calls = this.#waiting().filter((call) => call.retryAt === null);
    const [first] = calls;
    if (first === undefined || !this.#isAllElseStill()) return;
    if (this.mayTryAgain) {
      this.mayTryAgain = false;
      for (const call of calls) this.#begin(call);
    } else if (this.#mustRest) this.#rest(calls);
    else this.#park(calls);
  }

  #waiting(): StepCall[] {
    return [...this.#calls].filter((call) => call.open && isRefused(call)).sort((a, b) => a.order - b.order);
  }

  #isAllElseStill(): boolean {
    const pass = this.#pass;
    if (!pass.isLive || pass.isInTurn || pass.isClosed || pass.body.isOver || pass.draft.isHeld) return false;
    if (pass.replay.hasFound || pass.replay.hasInterrupted) return false;
    if (pass.mailbox.isBeingRead) return false;
    return pass.steps.isQuiet && pass.calls.areAllWaiting && wakeupOf(pass) === null;
  }

  #park(calls: readonly StepCall[]): void {
    this.#pass.park(parkOf(this.#pass.id, calls));
    for (const call of calls) {
      for (const change of this.#conditionsFor(call.spending?.refusal as Refused)) this.#pass.draft.counter(change);
    }
  }

  /** That a call has no room, and would not have if nothing were reserved (RC1). */
  #conditionsFor(refusal: Refused): CounterChange[] {
    const { budget: of, unit, limit, asked } = refusal;
    const max = toCount(unit, limit);
    const change = (key: string, by: number, bound: number | null, about: Condition["about"]): CounterChange => {
      const made: CounterChange = { key, of, by, max: bound, held: false };
      conditions.set(made, { about, refusal, calls: this });
      return made;
    };
    const atMost = (key: string, value: number, about: Condition["about"]) => [
      change(key, 1, value + 1, about),
      change(key, -1, null, about),
    ];
    const raised = atMost(COUNTERS.limit(unit), max, "limit");
    // It asks for more than there ever was.
    if (unit === "time" || asked > limit) return raised;
    const used = this.#used.get(counterOf(refusal)) ?? toCount(unit, refusal.used);
    const spentAtLeast = max - toCount(unit, asked) + 1;
    return [
      ...raised,
      change(COUNTERS.used(unit), -used, null, "used"),
      change(COUNTERS.used(unit), used, null, "used"),
      ...atMost(COUNTERS.reserved(unit), used - spentAtLeast, "reserved"),
    ];
  }

  /** The run was not parked, since this does not hold. */
  heed({ about, refusal }: Condition, { value }: CounterRefusal): void {
    const { unit, asked, limit } = refusal;
    if (about === "reserved") this.#mustRest = true;
    else if (about === "limit" || value + toCount(unit, asked) <= toCount(unit, limit)) this.mayTryAgain = true;
    // Less than there was, and still too much: thought out anew with that.
    else this.#used.set(counterOf(refusal), value);
    this.#pass.overtaken("cancel");
  }

  /** The next pass begins with another try, whenever it comes: the time needs no record. */
  #rest(calls: readonly StepCall[]): void {
    const { ports } = this.#pass;
    this.#mustRest = false;
    const tries = Math.max(...calls.map(({ spending }) => spending?.refusals ?? 1));
    const pauseMs = Math.min(LIMITS.budgetPauseMs * 2 ** Math.min(tries - 1, 10), LIMITS.budgetPauseMaxMs);
    for (const call of calls) call.retryAt = ports.clock.now() + pauseMs;
    this.#pass.evaluate();
  }

  /** Something of this budget is settled. */
  wake(budget: string): void {
    const pass = this.#pass;
    const calls = this.#waiting().filter(({ spending }) => spending?.refusal?.budget === budget);
    if (pass.isOver || this.#waiting().length === 0) return void refusedHere.get(pass.ports)?.delete(this);
    if (calls.length === 0) return;
    this.mayTryAgain = true;
    for (const call of calls) if (call.retryAt !== null) call.retryAt = pass.ports.clock.now();
    pass.evaluate();
  }

  /** Its pause is over. */
  tryAgain(call: StepCall): void {
    call.retryAt = null;
    this.#begin(call);
  }
}

/** Those who rest because of what others have reserved of a budget need not wait any longer. */
export function wakeResting(ports: PassPorts, budget: string): void {
  for (const calls of [...(refusedHere.get(ports) ?? [])]) calls.wake(budget);
}

/** Whether a refused change was a condition for parking the run. */
export function heedCondition(change: CounterChange, refusal: CounterRefusal): boolean {
  const condition = conditions.get(change);
  condition?.calls.heed(condition, refusal);
  return condition !== undefined;
}

function counterOf({ budget, unit }: Refused): string {
  return `${budget}/${unit}`;
}

function parkOf(run: string, calls: readonly StepCall[]): Parked {
  const [first] = calls;
  const refusal = first?.spending?.refusal as Refused;
  const others = calls.length === 1 ? "" : ` So it is with ${calls.length - 1} more of its steps.`;
  return {
    reason: "budget_exceeded",
    message:
      `Run ${run} has stopped before step "${first?.key}": ${refusalText(refusal)}${others} ` +
      'Resolve it with "raise" and new limits, such as { "usd": 2 }, with "fail", or with "cancel".',
    choices: ["raise", "fail", "cancel"],
    detail: { ...refusal, steps: calls.map(({ key }) => key) },
  };
}
