// What a fork does outside
// A fork may act as its source did, or be dry (core/dry.ts): then it takes along how the calls of its source ended.
import { PawlError } from "../base/errors.ts";
import type { Draft } from "../core/draft.ts";
import { dryPolicyIn, FORK_EFFECTS, type ForkEffects } from "../core/dry.ts";
import {
  type DryPolicy,
  type Entry,
  entryKind,
  isStepSuccess,
  type OutcomeRecorded,
  type StepStarted,
} from "../core/journal.ts";

export interface ForkOptions {
  /** Before the call with this key, or before the entry with this position. */
  readonly at: string | number;
  /**
   * What becomes of calls that would act outside: "live" does them; "replay" answers each with what the source has recorded, and begins nothing;
   * "dry-run" also lets models and reads run, and takes a call's `dry` value where nothing is recorded. A fork of a dry run is always dry. Default "live".
   */
  readonly effects?: ForkEffects;
  /** The id of the new run. A second fork of the same run with it is the same fork. */
  readonly id?: string;
}

/** What a caller asks of a fork, checked; `null`: it does not say that it is to be dry. */
export function dryPolicyOf(run: string, { effects }: ForkOptions, journal: readonly Entry[]): DryPolicy | null {
  if (effects === undefined) return null;
  if (!FORK_EFFECTS.includes(effects))
    throw new PawlError("invalid_argument", `effects is "${effects}". Give one of ${FORK_EFFECTS.join(", ")}.`, {
      fields: { field: "effects", value: effects },
    });
  if (effects !== "live") return effects;
  if (dryPolicyIn(journal) === null) return null;
  throw new PawlError(
    "invalid_argument",
    `Run ${run} is dry: what it has seen was simulated, so a fork of it cannot be live. Fork the run that it came from, or leave out effects.`,
    { fields: { run, field: "effects" } },
  );
}

export function idTaken(run: string): PawlError {
  const message = `Run ${run} exists, and is no fork of this run. Give the fork another id, or none.`;
  return new PawlError("idempotency_conflict", message, { fields: { run } });
}

/** How the calls of the fork's own generation ended in the source, behind the fork point. */
export function copyOutcomes(draft: Draft, journal: readonly Entry[], at: number, now: number): void {
  const next = journal.findIndex(({ type, seq }) => seq >= at && type === "run.continued");
  const generation = next < 0 ? journal : journal.slice(0, next);
  const digests = new Map<string | null, string | null>();
  for (const entry of generation) {
    const { type, key, payload, seq } = entry;
    // Of a dry run: how the calls of its own source ended.
    if (type === "outcome.recorded" && seq >= at) draft.append(now, type, key, payload);
    if (entryKind(entry) === "call") digests.set(key, (payload as StepStarted)?.digest ?? null);
    const isOutcome = isStepSuccess(type) || type === "step.failed";
    if (seq < at || !isOutcome || entryKind(entry) !== "outcome" || type === "effect.compensated") continue;
    const recorded = { type: type as OutcomeRecorded["type"], digest: digests.get(key) ?? null, value: payload };
    draft.append(now, "outcome.recorded", key, recorded satisfies OutcomeRecorded);
  }
}
