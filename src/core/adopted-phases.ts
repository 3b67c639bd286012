// What was done before
// An import, an edit or a migration says which phases and steps were done before the journal's first entry: `ctx.run.adopted`. This is how a
// run made of phases reads it.
import type { DocumentEffect, PhaseRecord } from "./state-document.ts";
import type { DocumentStatus } from "./status-words.ts";

export type AdoptedPhase = PhaseRecord;

/** The part of a state document that a run goes on from. */
export interface AdoptedPhases {
  readonly phases: Readonly<Record<string, AdoptedPhase>>;
  /** When the run began, before it came here. */
  readonly startedAt: string | null;
  readonly effects: readonly DocumentEffect[];
  /** Run state of the author's own. */
  readonly state: Readonly<Record<string, unknown>>;
}

const NOTHING: AdoptedPhases = { phases: {}, startedAt: null, effects: [], state: {} };

/** Anything else than phases is somebody else's to interpret. */
export function adoptedPhases(adopted: unknown): AdoptedPhases {
  if (typeof adopted !== "object" || adopted === null) return NOTHING;
  const { phases, started_at, effects, state } = adopted as Readonly<Record<string, unknown>>;
  return {
    phases: recordOf(phases) as Record<string, AdoptedPhase>,
    startedAt: typeof started_at === "string" ? started_at : null,
    effects: Array.isArray(effects) ? (effects as DocumentEffect[]) : [],
    state: recordOf(state),
  };
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** What has begun, so that what comes before it and is not there was not on the way. */
export function hasBegun(status: DocumentStatus): boolean {
  return status !== "pending";
}
