// What steps have come to, as a journal records it
import { isDeepStrictEqual } from "node:util";
import { jsonCodec } from "../../base/envelope.ts";
import { isStepSuccess, type StepFailed, type StoredEntry } from "../../core/journal.ts";
import { openEntry } from "../../core/values.ts";
import { errorFacts } from "./run-end.ts";

export interface StepOutcome {
  readonly step: string;
  readonly entry: StoredEntry;
}

/** Final outcomes by name, in order. A step of the same key comes again in a run that was continued. */
export function outcomesOf(run: string, journal: readonly StoredEntry[]): Map<string, StepOutcome> {
  const nameOf = numbered();
  const outcomes = new Map<string, StepOutcome>();
  for (const entry of journal) {
    if (entry.key === null || !isOutcome(run, entry)) continue;
    outcomes.set(nameOf("outcome", entry.key), { step: entry.key, entry });
  }
  return outcomes;
}

/** Errors are alike if name, code and message are: their stacks differ with the way by which a function was called. */
export function isSameOutcome(run: string, a: StoredEntry, b: StoredEntry): boolean {
  if (a.type !== b.type) return false;
  if (isStepSuccess(a.type)) return isDeepStrictEqual(a.data, b.data);
  return isDeepStrictEqual(errorFacts(failureOf(run, a).error), errorFacts(failureOf(run, b).error));
}

export function failureOf(run: string, entry: StoredEntry): StepFailed {
  return openEntry(jsonCodec, run, entry).payload as StepFailed;
}

/** Whether it is the last word about a step: a failure that is retried is not. */
export function isOutcome(run: string, entry: StoredEntry): boolean {
  if (isStepSuccess(entry.type)) return true;
  return entry.type === "step.failed" && failureOf(run, entry).retryAt === null;
}

/** Steps that have begun and have no outcome: nobody waited for them, or nobody does any more. */
export function openSteps<E extends Pick<StoredEntry, "type" | "key">>(
  journal: readonly E[],
  isOver: (entry: E) => boolean,
): string[] {
  const open = new Set<string>();
  for (const entry of journal) {
    if (entry.key === null) continue;
    if (entry.type === "step.started" || entry.type === "effect.planned") open.add(entry.key);
    else if (isOver(entry)) open.delete(entry.key);
  }
  return [...open];
}

/** Names things by what they are, their key, and how often they have come. */
export function numbered(): (what: string, key: string | null) => string {
  const times = new Map<string, number>();
  return (what, key) => {
    const name = `${what} ${key}`;
    const time = (times.get(name) ?? 0) + 1;
    times.set(name, time);
    return `${name} ${time}`;
  };
}
