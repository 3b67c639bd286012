// Dry runs
// A run that goes over the ways of another one without leaving a trace outside. What it would do there is answered from the record of that
// run, or by what the call itself says, and is marked in the ledger.
//
//   DR1. Whether a run is dry is in its journal before the first call that it holds for, and never changes: what follows from simulated
//        answers must not become real.
//   DR2. Of a dry run no function begins but of what only reads or asks a model, or says that it may run dry; with "replay" not even those.
//   DR3. A call is answered by the outcome that the source has recorded under its key and input, else by its `dry` value. One that has neither
//        fails; nothing is made up.
//   DR4. What was to be undone is not: it was never done here.
//   DR5. The runs below a dry run are dry, and nobody is notified by any of them.
import { PawlError } from "../base/errors.ts";
import type { StepCall } from "./call.ts";
import { decodePayload, encodePayload } from "./draft.ts";
import type { DryPolicy, Entry, Forked, OutcomeRecorded, RunStarted, StepFailed } from "./journal.ts";
import { finalFailure } from "./recovery.ts";
import type { Outcome } from "./steps.ts";

/** What a call does in a dry run: it runs all the same, answers with what is recorded or not at all, or else with this value. */
export type Dry<T> = "run" | "recorded" | { readonly value: T };

/** How a fork treats what acts outside. */
export type ForkEffects = DryPolicy | "live";

export const FORK_EFFECTS: readonly ForkEffects[] = ["replay", "dry-run", "live"];

/** What a dry run does instead of acting. */
export class DryCalls {
  readonly policy: DryPolicy;
  readonly #run: string;
  readonly #recorded: ReadonlyMap<string, OutcomeRecorded>;

  constructor(run: string, policy: DryPolicy, recorded: ReadonlyMap<string, OutcomeRecorded>) {
    this.#run = run;
    this.policy = policy;
    this.#recorded = recorded;
  }

  /** Whether the call's function may begin (DR2). */
  runs({ policy, endsAs }: StepCall): boolean {
    return this.policy === "dry-run" && policy.dry === "run" && endsAs !== "effect.compensated";
  }

  /** What the call comes to without its function (DR3). */
  outcomeOf(call: StepCall): Outcome {
    if (call.endsAs === "effect.compensated") return done(call, null);
    const recorded = this.#recorded.get(call.key);
    if (recorded !== undefined && recorded.digest === (call.input?.digest ?? null)) return repeated(call, recorded);
    const { dry } = call.policy;
    return typeof dry === "object" ? done(call, dry.value) : finalFailure(call, this.#unanswered(call));
  }

  #unanswered({ key, name }: StepCall): PawlError {
    const next =
      this.policy === "replay"
        ? 'Fork with effects: "dry-run", or before another step'
        : `Give it an answer for dry runs, such as dry: { value: … }, or dry: "run" if it changes nothing outside`;
    return new PawlError(
      "effect_not_recorded",
      `"${name}" of run ${this.#run} was not done: the run is dry (${this.policy}), and the run that it was forked from has no outcome of "${key}" for the same input. ${next}.`,
      { fields: { run: this.#run, step: key, effects: this.policy } },
    );
  }
}

function done(call: StepCall, value: unknown): Outcome {
  try {
    const text = encodePayload(value, `dry value of "${call.key}"`);
    return { call, type: call.endsAs, text, payload: decodePayload(text) };
  } catch (error) {
    return finalFailure(call, error);
  }
}

/** Success is called what the code of today makes of the call: a step may have become an effect. */
function repeated(call: StepCall, { type, value }: OutcomeRecorded): Outcome {
  return type === "step.failed" ? finalFailure(call, (value as StepFailed).error) : done(call, value);
}

/** How a journal says that its run is dry; `null`: it is not. */
export function dryPolicyIn(entries: readonly Entry[]): DryPolicy | null {
  const first = (entries[0]?.payload as Partial<RunStarted> | null | undefined)?.effects ?? null;
  const forks = entries.filter(({ type }) => type === "run.forked").map(({ payload }) => payload as Forked);
  return forks.findLast(({ effects }) => effects !== undefined)?.effects ?? first;
}

/** Reads what a pass needs to run dry off its journal. */
export function dryCallsIn(run: string, entries: readonly Entry[]): DryCalls | null {
  const policy = dryPolicyIn(entries);
  if (policy === null) return null;
  const marks = entries.filter(({ type }) => type === "outcome.recorded");
  return new DryCalls(run, policy, new Map(marks.map(({ key, payload }) => [key ?? "", payload as OutcomeRecorded])));
}

/** Checks what a call says about dry runs. */
export function assertDry(what: string, dry: unknown): void {
  if (dry === undefined || dry === "run" || dry === "recorded") return;
  if (typeof dry === "object" && dry !== null && "value" in dry) return;
  throw new PawlError(
    "invalid_argument",
    `${what}: \`dry\` is "run", "recorded", or an answer for dry runs: { value: … }.`,
    {
      fields: { field: "dry" },
    },
  );
}
