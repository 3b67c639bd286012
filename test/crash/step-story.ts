import type { Entry } from "../../src/index.ts";

/** What a journal tells about one step. */
export interface StepStory {
  readonly starts: number;
  /** Attempts that failed, and were to be followed by another one. */
  readonly failures: number;
  readonly outcomes: number;
  readonly outcome?: Entry;
}

/** The steps of a run by their keys; those of later generations with its number in front, as in `1 visit`. */
export function stepsOf(journal: readonly Entry[]): ReadonlyMap<string, StepStory> {
  const steps = new Map<string, StepStory>();
  let generation = 0;
  for (const entry of journal) {
    if (entry.type === "run.continued") generation += 1;
    if (!entry.type.startsWith("step.")) continue;
    const name = generation === 0 ? `${entry.key}` : `${generation} ${entry.key}`;
    const before = steps.get(name) ?? { starts: 0, failures: 0, outcomes: 0 };
    steps.set(name, after(before, entry));
  }
  return steps;
}

function after(story: StepStory, entry: Entry): StepStory {
  if (entry.type === "step.started") return { ...story, starts: story.starts + 1 };
  if (!isOutcome(entry)) return { ...story, failures: story.failures + 1 };
  return { ...story, outcomes: story.outcomes + 1, outcome: entry };
}

export function isOutcome({ type, payload }: Pick<Entry, "type" | "payload">): boolean {
  return type === "step.completed" || (type === "step.failed" && (payload as { retryAt: unknown }).retryAt === null);
}
