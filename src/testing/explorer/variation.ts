// Variation
// A step may return what the outside gives: the time, a new id. Then no two histories are alike, and only what does not follow from it can be
// compared. Two histories that nothing has disturbed tell which steps vary; what differs between them otherwise is the body's own fault.
//
//   VA1. A result is compared with the undisturbed one only while no step varies. It must always be what the body makes of the recorded
//        outcomes of its own history: the replay without the last entry shows that, in every history as soon as a step varies.
//   VA2. Effects are told apart by name and details; where steps or details vary, by name and key; where keys vary, too, by name.
//   VA3. A step that varies only after a crash, because it ran again, is a fault.
import { isDeepStrictEqual } from "node:util";
import { jsonCodec } from "../../base/envelope.ts";
import { isStepSuccess, type StoredEntry } from "../../core/journal.ts";
import { openEntry } from "../../core/values.ts";
import type { Effect } from "../recorder.ts";
import { byDetails, byKey, byName, type Identify, type UnequalEffect, unequalEffects } from "./effect-counts.ts";
import { show } from "./run-end.ts";
import { isSameOutcome, numbered, outcomesOf } from "./step-outcomes.ts";
import type { Fault, Outcome } from "./verdict.ts";

/** How far the effects of one name can be told apart. */
type Distinction = "details" | "key" | "name" | "none";
const IDENTITIES: Readonly<Record<Distinction, Identify>> = {
  details: byDetails,
  key: byKey,
  name: byName,
  none: () => null,
};

export class Variation {
  readonly #first: Outcome;
  /** By run. */
  readonly #steps = new Map<string, Set<string>>();
  /** Steps that make effects whose details vary. */
  readonly #makers = new Set<string>();
  readonly #effects = new Map<string, Distinction>();
  #isObservedAlike = true;

  constructor(undisturbed: Outcome) {
    this.#first = undisturbed;
  }

  /** Whether any step's outcome does. */
  get hasSteps(): boolean {
    return this.#steps.size > 0;
  }

  /** For people: the steps whose outcome or effects are not the same in undisturbed histories. */
  get names(): readonly string[] {
    return [...new Set([...[...this.#steps.values()].flatMap((steps) => [...steps]), ...this.#makers])];
  }

  get isObservedAlike(): boolean {
    return this.#isObservedAlike;
  }

  has(run: string, step: string): boolean {
    return this.#steps.get(run)?.has(step) === true;
  }

  /** What an effect is to be told apart by. */
  readonly identify: Identify = (effect) => {
    const known = this.#effects.get(effect.name) ?? "details";
    return IDENTITIES[known === "details" && this.hasSteps ? "key" : known](effect);
  };

  /** Takes in another undisturbed history; answers what of its difference no step explains. */
  learn(other: Outcome): Fault | null {
    let unexplained: Odd | null = null;
    let isExplained = false;
    for (const [run, journal] of this.#first.journals) {
      const twin = other.journals.get(run) ?? [];
      this.#compareOutcomes(run, journal, twin);
      // Whatever comes after the first odd entry may follow from it.
      const odd = firstOdd(run, journal, twin);
      const step = odd !== null && isStepEnd(odd.entry) ? odd.entry.key : null;
      if (step !== null && hasStep(journal, step) && hasStep(twin, step)) {
        this.#add(run, step);
        isExplained = true;
      } else unexplained ??= odd;
    }
    const effects = this.#compareEffects(other.requests);
    if (this.hasSteps && !isDeepStrictEqual(this.#first.observed, other.observed)) this.#isObservedAlike = false;
    if (isExplained) return null;
    return unexplained === null ? effects : sharedState(unexplained);
  }

  #compareOutcomes(run: string, journal: readonly StoredEntry[], twin: readonly StoredEntry[]): void {
    const outcomes = outcomesOf(run, twin);
    for (const [name, { step, entry }] of outcomesOf(run, journal)) {
      const found = outcomes.get(name);
      if (found !== undefined && !isSameOutcome(run, entry, found.entry)) this.#add(run, step);
    }
  }

  #add(run: string, step: string): void {
    const steps = this.#steps.get(run) ?? new Set();
    this.#steps.set(run, steps.add(step));
  }

  #compareEffects(requests: readonly Effect[]): Fault | null {
    const { requests: usual } = this.#first;
    const unequal = unequalEffects(usual, requests, this.identify);
    const [first] = unequal;
    if (first === undefined) return null;
    for (const { effect } of unequal) {
      if (effect.where !== "step" && !this.hasSteps) return otherEffect(first);
      const ofName = (one: Effect) => (one.name === effect.name ? one : []);
      const [before, now] = [usual.flatMap(ofName), requests.flatMap(ofName)];
      const isAlikeBy = (identify: Identify) => unequalEffects(before, now, identify).length === 0;
      const distinction = isAlikeBy(byKey) ? "key" : isAlikeBy(byName) ? "name" : "none";
      if (distinction === "none" && !this.hasSteps) return otherEffect(first);
      this.#effects.set(effect.name, distinction);
      if (effect.step !== null) this.#makers.add(effect.step);
    }
    return null;
  }
}

/** An entry that only one of two histories has, or that has another value in each. */
interface Odd {
  readonly run: string;
  readonly entry: StoredEntry;
  readonly twin: StoredEntry | undefined;
  /** The step that had completed last. */
  readonly before: string | null;
  /** Whether the second history has it, and the first has not. */
  readonly isSecond: boolean;
}

function firstOdd(run: string, first: readonly StoredEntry[], second: readonly StoredEntry[]): Odd | null {
  const odd = oddEntry(first, second);
  if (odd !== null) return { run, ...odd, isSecond: false };
  const other = oddEntry(second, first);
  return other === null ? null : { run, ...other, isSecond: true };
}

/** The first entry that the other journal does not have alike, whatever the order: branches may come in any. */
function oddEntry(
  journal: readonly StoredEntry[],
  other: readonly StoredEntry[],
): Pick<Odd, "entry" | "twin" | "before"> | null {
  const nameOf = numbered();
  const twins = new Map(other.map((entry) => [nameOf(entry.type, entry.key), entry]));
  const ownName = numbered();
  let before: string | null = null;
  for (const entry of journal) {
    // What a step saves on its way, and how often, is its own affair: its outcome is compared.
    if (entry.type === "checkpoint") continue;
    const twin = twins.get(ownName(entry.type, entry.key));
    if (twin === undefined || (hasValue(entry) && !isDeepStrictEqual(entry.data, twin.data)))
      return { entry, twin, before };
    if (isStepSuccess(entry.type)) before = entry.key;
  }
  return null;
}

function hasValue({ type }: StoredEntry): boolean {
  return isStepSuccess(type) || type === "run.succeeded";
}

function isStepEnd({ type }: StoredEntry): boolean {
  return isStepSuccess(type) || type === "step.failed";
}

function hasStep(journal: readonly StoredEntry[], step: string): boolean {
  return journal.some((entry) => entry.key === step && /^(step|effect)\./.test(entry.type));
}

// In words

function sharedState({ run, entry, twin, before, isSecond }: Odd): Fault {
  const [first, second] = isSecond ? [twin, entry] : [entry, twin];
  const after = before === null ? "" : ` after step "${before}"`;
  const step = entry.type.startsWith("step.") ? entry.key : before;
  return tookTwoWays(step, `first ${describe(run, first)}${after}, then ${describe(run, second)}`);
}

function otherEffect({ effect, identity, counts: [first, second] }: UnequalEffect): Fault {
  return tookTwoWays(effect.step, `the effect ${identity} ${first} times, then ${second} times`);
}

function tookTwoWays(step: string | null, words: string): Fault {
  return {
    kind: "shared-state",
    ...(step === null ? {} : { step }),
    message:
      `Run twice without any crash, the workflow took two ways: ${words}. Something outlives a run: a variable outside of the body, ` +
      "or a fake that `fresh` does not reset. A restarted process has lost it; keep it in the run (ctx.set, a step's result) instead.",
  };
}

function describe(run: string, entry: StoredEntry | undefined): string {
  if (entry === undefined) return "nothing";
  const { payload } = openEntry(jsonCodec, run, entry);
  const value = hasValue(entry) ? ` with ${show(payload)}` : "";
  return `${entry.type}${entry.key === null ? "" : ` "${entry.key}"`}${value}`;
}
