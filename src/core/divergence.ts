// Divergence
// When code and journal disagree, the run is parked with a diff that a person can act on.
import { PawlError } from "../base/errors.ts";
import type { Call } from "./call.ts";
import { entryTypeOf } from "./issue.ts";
import type { Entry, Parked } from "./journal.ts";
import { LIMITS } from "./limits.ts";

/** A recorded entry and what the body did instead. */
export interface Divergence {
  readonly recorded: Entry;
  /** The call that was issued there; `null`: the body ended or went quiet without it. */
  readonly issued: Call | null;
  readonly site: string | null;
}

/** A call as people name it: `step "charge"`. */
export function describeCall(call: Call): string {
  return describeEntry({ type: entryTypeOf(call), key: call.key });
}

const WORDS: Readonly<Record<string, string>> = {
  "step.started": "step",
  "effect.planned": "effect",
  "timer.set": "sleep",
  "signal.awaited": "waitFor",
  "child.started": "child",
  "approval.requested": "approve",
  "callback.opened": "callback",
};

export function driftOf(run: string, divergence: Divergence): Parked {
  const { recorded, issued, site } = divergence;
  return {
    reason: "replay_drift",
    message: describe(run, divergence),
    choices: ["retry", "cancel"],
    detail: {
      seq: recorded.seq,
      recorded: describeEntry(recorded),
      issued: issued === null ? null : describeCall(issued),
      site,
    },
  };
}

/** The body has gone quiet without issuing a recorded call. */
export function stallOf(run: string, recorded: Entry): Parked {
  const seconds = LIMITS.replayStallMs / 1000;
  return {
    reason: "replay_stalled",
    message: `${describe(run, { recorded, issued: null, site: null })} It has been quiet for ${seconds} s.`,
    choices: ["retry", "cancel"],
    detail: { seq: recorded.seq, recorded: describeEntry(recorded) },
  };
}

/** A call, or a draw, that came out of a foreign await while others were pending: its place among them cannot be replayed (P4). */
export function foreignAwait(
  run: string,
  call: string,
  pending: readonly Call[],
  site: string,
): { readonly error: PawlError; readonly parked: Parked } {
  const message =
    `Run ${run} called ${call} at ${site} after awaiting something that is not a Pawl call, ` +
    `while ${pending.map(describeCall).join(", ") || "an outcome"} was still pending. In parallel branches that order cannot be replayed. ` +
    'Move the foreign await into a ctx.step, deploy, and resolve the run with "retry".';
  const detail = { call, site };
  return {
    error: new PawlError("foreign_await", message, { fields: { run, ...detail } }),
    parked: { reason: "foreign_await", message, choices: ["retry", "cancel"], detail },
  };
}

function describe(run: string, { recorded, issued, site }: Divergence): string {
  const did =
    issued === null
      ? "did not issue it"
      : `issued ${describeCall(issued)}${site === null ? "" : ` at ${site}`}${isSameCall(recorded, issued) ? " with another input" : ""}`;
  return (
    `Replay of run ${run} diverged at entry ${recorded.seq}: the journal has ${describeEntry(recorded)}, the code ${did}. ` +
    "The workflow changed, or its body depends on something that is not recorded. " +
    'Deploy code that follows the journal and resolve the run with "retry", fork it before that entry, or cancel it.'
  );
}

/** An entry as people name it: a call like one, anything else by its type. */
export function describeEntry({ type, key }: Pick<Entry, "type" | "key">): string {
  return `${WORDS[type] ?? type}${key === null ? "" : ` "${key}"`}`;
}

function isSameCall(recorded: Entry, issued: Call): boolean {
  return recorded.type === entryTypeOf(issued) && recorded.key === issued.key;
}
