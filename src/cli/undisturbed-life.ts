// How a life goes that nothing disturbs, and what another one is blamed for. Several undisturbed lives show what is never the same: the
// time, a new id, and what follows from them. That is not compared.
import { decode } from "../base/codec.ts";
import type { CrashPoint } from "../testing/explorer/crash-point.ts";
import { WHY_TOO_FEW } from "../testing/explorer/verdict.ts";
import { FOLDER_VARIABLE } from "../testing/outside-memory.ts";
import type { Departure, LifeEffect, LifeEnd, LifeStory } from "./crash-life.ts";
import { type Difference, differences } from "./difference.ts";
import { shortJson } from "./printable.ts";

/** What a life is blamed for. */
export interface Blame {
  readonly kind: "result" | "effects" | "parked" | "stuck";
  /** What happened, and what to do about it. */
  readonly message: string;
  readonly step?: string;
  readonly line?: string;
}

export const RECOVERED = "Recovered in a fresh process, the run";

const ADVICE = `A fresh process has none of the variables that this code had set before the crash. Return what is needed later from a step; if it is what a fake remembers, keep it in a file in the folder that ${FOLDER_VARIABLE} names, as recorder() does.`;

const TOO_MANY = "Pass the step's key on, so that the other side recognises a request that it has seen.";

export class Undisturbed {
  readonly points: readonly CrashPoint[];
  readonly #story: LifeStory;
  /** Steps that came to something else without any crash. */
  readonly #varying: Set<string>;
  readonly #unstable = new Set<string>();
  /** Names of effects whose details did. */
  readonly #unlike = new Set<string>();

  constructor(points: readonly CrashPoint[], story: LifeStory, varying: readonly string[]) {
    this.points = points;
    this.#story = story;
    this.#varying = new Set(varying);
  }

  /** Parts of the result that differ between undisturbed lives. */
  get notCompared(): readonly string[] {
    return [...this.#unstable];
  }

  /** Takes in another life that nothing has disturbed. */
  learn(other: LifeStory): void {
    for (const { path } of between(this.#story.end, other.end)) this.#unstable.add(path);
    for (const { key } of otherSteps(this.#story, other)) this.#varying.add(key);
    const [own, theirs] = [this.#story.effects, other.effects];
    for (const { name } of [...without(own, theirs), ...without(theirs, own)]) this.#unlike.add(name);
  }

  judge(story: LifeStory): Blame[] {
    const { end } = story;
    if ((end.kind === "parked" || end.kind === "stuck") && end.kind !== this.#story.end.kind) {
      const what = end.kind === "parked" ? "was parked" : "did not end";
      return [{ kind: end.kind, message: `${RECOVERED} ${what}: ${end.message}` }];
    }
    return [...this.#otherResult(story), ...this.#otherEffects(story)];
  }

  #otherResult(story: LifeStory): Blame[] {
    // A run that ends otherwise because a step was interrupted for good does what was asked of it.
    if (story.isInterrupted) return [];
    const all = between(this.#story.end, story.end);
    const [difference] = all.filter(({ path }) => !isUnder(path, this.#unstable));
    if (difference === undefined) return [];
    const step = otherSteps(this.#story, story).find(({ key }) => !this.#varying.has(key));
    // What else differs may follow from steps that vary.
    if (step === undefined && this.#varying.size > 0) return [];
    const { path, expected, actual } = difference;
    const place = path === "" ? "the result" : `the result's ${path.slice(1)}`;
    const blame =
      step === undefined ? "" : ` Step "${step.key}" recorded ${step.actual}, undisturbed ${step.expected}.`;
    const message = `${RECOVERED} ended otherwise: ${place} is ${shown(actual)}, undisturbed ${shown(expected)}.${blame} ${ADVICE}`;
    return [{ kind: "result", message, ...(step !== undefined && { step: step.key }) }];
  }

  #otherEffects(story: LifeStory): Blame[] {
    const isCompared = this.#comparable(story);
    const [usual, made] = [this.#story.effects.filter(isCompared), story.effects.filter(isCompared)];
    // How far a run comes before a cancel or an interrupted step ends it, a crash may change; how often it does a thing, never.
    const isCutShort = story.isInterrupted || this.#story.isCancelled;
    return [...new Set([...usual, ...made].map(({ name }) => name))].flatMap((name): Blame[] => {
      const own = made.filter((one) => one.name === name);
      const others = usual.filter((one) => one.name === name);
      const [expected, actual] = [others.length, own.length];
      if (isCutShort && actual <= Math.max(1, expected)) return [];
      if (expected === actual) return this.#otherDetails(name, own, others);
      const step = (own.at(-1) ?? others.at(-1))?.step ?? null;
      const maker = step === null ? "" : ` Step "${step}" makes it.`;
      const next = actual > expected ? TOO_MANY : WHY_TOO_FEW;
      const message = `${RECOVERED} had other effects: "${name}" happened ${actual === 1 ? "1 time" : `${actual} times`}, undisturbed ${expected}.${maker} ${next}`;
      return [{ kind: "effects", message, ...(step !== null && { step }) }];
    });
  }

  /** As many as ever, but made from something else. Where steps vary, that may follow from them. */
  #otherDetails(name: string, own: readonly LifeEffect[], usual: readonly LifeEffect[]): Blame[] {
    const [other] = without(own, usual);
    if (other === undefined || this.#varying.size > 0 || this.#unlike.has(name)) return [];
    const { step, what } = other;
    const maker = step === null ? "" : ` Step "${step}" makes it.`;
    const message = `${RECOVERED} made the effect ${what}, undisturbed ${without(usual, own)[0]?.what}.${maker} ${ADVICE}`;
    return [{ kind: "effects", message, ...(step !== null && { step }) }];
  }

  /** Steps that nobody waited for may have had their effect, or not; where steps vary, only steps that both lives have come to count. */
  #comparable(story: LifeStory): (effect: LifeEffect) => boolean {
    const lives = [this.#story, story].map(({ reached, abandoned }) => ({
      reached: new Set(reached),
      abandoned: new Set(abandoned),
    }));
    return ({ run, step }) => {
      if (step === null) return true;
      const name = `${run} ${step}`;
      if (lives.some(({ abandoned }) => abandoned.has(name))) return false;
      return this.#varying.size === 0 || lives.every(({ reached }) => reached.has(name));
    };
  }
}

/** A body that comes to something else in a process in which none of its steps has run. */
export function departed({ message, line }: Departure): Blame {
  const place = line === undefined ? "" : ` (${line})`;
  return {
    kind: "result",
    message: `Replayed in a fresh process, from what an undisturbed run has recorded: ${message}${place} ${ADVICE}`,
    ...(line !== undefined && { line }),
  };
}

/** Those of the first list that the second one does not have as often. */
function without(effects: readonly LifeEffect[], others: readonly LifeEffect[]): LifeEffect[] {
  const left = others.map(({ what }) => what);
  return effects.filter(({ what }) => {
    const at = left.indexOf(what);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

/** Where two ends differ. An error is compared by its text. */
function between(expected: LifeEnd, actual: LifeEnd): Difference[] {
  return differences(endValue(expected), endValue(actual));
}

function endValue(end: LifeEnd): unknown {
  return end.kind === "returned" ? decode(end.value) : `${end.kind}: ${end.message}`;
}

function isUnder(path: string, parents: ReadonlySet<string>): boolean {
  return [...parents].some(
    (parent) => path === parent || path.startsWith(`${parent}.`) || path.startsWith(`${parent}[`),
  );
}

interface OtherStep {
  readonly key: string;
  readonly expected: string;
  readonly actual: string;
}

/** The steps that recorded something else, or nothing; values in words. */
function otherSteps(expected: LifeStory, actual: LifeStory): OtherStep[] {
  const values = new Map(actual.steps.map(({ key, value }) => [key, value]));
  return expected.steps
    .filter(({ key, value }) => values.get(key) !== value)
    .map(({ key, value }) => {
      const found = values.get(key);
      return { key, expected: shown(decode(value)), actual: found === undefined ? "nothing" : shown(decode(found)) };
    });
}

function shown(value: unknown): string {
  return shortJson(value, 80);
}
